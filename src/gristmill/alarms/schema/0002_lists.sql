-- The alarms of one client, and those that still last, found among many that are over.

CREATE INDEX alarm_by_scope ON alarm (scope, id) WHERE fired_at IS NOT NULL;
CREATE INDEX alarm_lasting ON alarm (id) WHERE fired_at IS NOT NULL AND over_at IS NULL;
