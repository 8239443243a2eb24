-- Schedules that send nothing while their last task still waits: where no worker serves a queue, nothing piles up.

ALTER TABLE schedule ADD COLUMN patient boolean NOT NULL DEFAULT false;
