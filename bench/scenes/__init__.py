"""What is measured, one file each: a function that takes the stage and gives figures."""
