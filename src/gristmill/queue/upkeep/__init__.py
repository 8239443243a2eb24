"""What any worker does for all of them: rescue, schedules, cleaning, breakers."""
