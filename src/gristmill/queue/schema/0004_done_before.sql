-- Groups of units some of which were done before their group was opened.

-- How many of `completed` have no task: a mail that its source has read needs no task that reads it.
ALTER TABLE task_group ADD done int NOT NULL DEFAULT 0 CHECK (done BETWEEN 0 AND completed);
