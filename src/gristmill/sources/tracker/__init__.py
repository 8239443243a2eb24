"""Issue trackers as a source: Jira, GitHub and GitLab."""
