-- Alarms: what is not as it should be, since when, and who knows.
-- needs: queue

-- One thing that a rule found, from the first time until it is over. Before it has lasted long enough it is not fired, and
-- nobody is told.
CREATE TABLE alarm (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope           int NOT NULL DEFAULT 1 REFERENCES scope,  -- whom it concerns; 1: the machines, and so the operator
  rule            text COLLATE "C" NOT NULL,
  subject         text COLLATE "C" NOT NULL,
  level           text COLLATE "C" NOT NULL CHECK (level IN ('warning', 'critical')),
  sentence        text NOT NULL,
  advice          text NOT NULL DEFAULT '',
  mark            text NOT NULL DEFAULT '',
  quiet           boolean NOT NULL DEFAULT false,
  since           timestamptz NOT NULL,            -- it has been so without a break, with the same mark
  seen_at         timestamptz NOT NULL,            -- the last look that found that it had lasted long enough
  fired_at        timestamptz,
  told_at         timestamptz,
  told            int NOT NULL DEFAULT 0,          -- how often
  over_at         timestamptz,
  acknowledged_at timestamptz,
  acknowledged_by text,
  note            text,
  CHECK (over_at IS NULL OR fired_at IS NOT NULL),
  CHECK ((acknowledged_at IS NULL) = (acknowledged_by IS NULL))
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX alarm_open ON alarm (rule, subject, scope) WHERE over_at IS NULL;
CREATE INDEX alarm_over ON alarm (over_at) WHERE over_at IS NOT NULL;

-- Where an alarm was told, each time.
CREATE TABLE alarm_delivery (
  alarm   bigint NOT NULL REFERENCES alarm ON DELETE CASCADE,
  scope   int NOT NULL,
  channel text COLLATE "C" NOT NULL,
  event   text COLLATE "C" NOT NULL CHECK (event IN ('fired', 'repeated', 'over')),
  number  int NOT NULL,                            -- how often the alarm had been told
  sent_at timestamptz NOT NULL,
  PRIMARY KEY (alarm, channel, event, number)
);

-- When the rules were looked at last; whoever holds the row settles what was found.
CREATE TABLE alarm_round (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  at  timestamptz
);
INSERT INTO alarm_round (at) VALUES (NULL);
