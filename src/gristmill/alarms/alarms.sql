-- Alarms: what the rules found, and what became of it.

-- name: now
SELECT clock();

-- name: lock_round
-- an evaluation that began before another one was settled has nothing to say any more
UPDATE alarm_round SET at = %(at)s WHERE at IS NULL OR at < %(at)s RETURNING at;

-- name: load_open
SELECT id, scope, rule, subject, level, mark, quiet, since, seen_at, fired_at, told_at, told, acknowledged_at
  FROM alarm WHERE over_at IS NULL AND rule = ANY (%(rules)s) ORDER BY id;

-- name: begin
INSERT INTO alarm (scope, rule, subject, level, sentence, advice, mark, quiet, since, seen_at, fired_at)
VALUES (%(scope)s, %(rule)s, %(subject)s, %(level)s, %(sentence)s, %(advice)s, %(mark)s, %(quiet)s, %(since)s, %(now)s,
        CASE WHEN %(fires)s THEN %(now)s::timestamptz END)
RETURNING id;

-- name: note_finding
-- pending or fired -> the same, or pending -> fired
UPDATE alarm
   SET level = %(level)s, sentence = CASE WHEN %(holds)s OR fired_at IS NULL THEN %(sentence)s ELSE sentence END,
       advice = %(advice)s, mark = %(mark)s, since = %(since)s,
       seen_at = CASE WHEN %(holds)s THEN %(now)s ELSE seen_at END,
       fired_at = CASE WHEN %(fires)s THEN %(now)s ELSE fired_at END
 WHERE id = %(id)s AND over_at IS NULL;

-- name: note_told
UPDATE alarm SET told_at = %(now)s, told = told + 1 WHERE id = %(id)s;

-- name: end_alarm
-- fired -> over
UPDATE alarm SET over_at = %(now)s WHERE id = %(id)s AND fired_at IS NOT NULL AND over_at IS NULL;

-- name: forget
-- pending -> gone
DELETE FROM alarm WHERE id = %(id)s AND fired_at IS NULL;

-- name: clean
-- a little at a time: the next look removes more
DELETE FROM alarm WHERE id IN (SELECT id FROM alarm WHERE over_at < %(before)s ORDER BY over_at LIMIT 1000);

-- name: acknowledge
-- open -> acknowledged, or acknowledged -> acknowledged by somebody else
UPDATE alarm SET acknowledged_at = clock(), acknowledged_by = %(by)s, note = %(note)s
 WHERE id = %(id)s AND fired_at IS NOT NULL AND over_at IS NULL RETURNING id;

-- name: count_firing
SELECT count(*)::int FROM (SELECT FROM alarm WHERE over_at IS NULL AND fired_at IS NOT NULL AND acknowledged_at IS NULL
                            LIMIT 1000) a;

-- name: list_lasting
-- the newest first, as all lists
SELECT a.id, s.client, s.project, a.rule, a.subject, a.level, a.sentence, a.advice, a.fired_at, a.seen_at, a.told_at, a.told,
       a.over_at, a.acknowledged_at, a.acknowledged_by, a.note
  FROM alarm a JOIN scope s ON s.id = a.scope
 WHERE a.fired_at IS NOT NULL AND a.over_at IS NULL AND a.id < %(before)s
 ORDER BY a.id DESC LIMIT %(limit)s;

-- name: list_fired
-- of all clients; most alarms are over, so asking for these alone passes over few
SELECT a.id, s.client, s.project, a.rule, a.subject, a.level, a.sentence, a.advice, a.fired_at, a.seen_at, a.told_at, a.told,
       a.over_at, a.acknowledged_at, a.acknowledged_by, a.note
  FROM alarm a JOIN scope s ON s.id = a.scope
 WHERE a.fired_at IS NOT NULL AND (NOT %(over)s OR a.over_at IS NOT NULL) AND a.id < %(before)s
 ORDER BY a.id DESC LIMIT %(limit)s;

-- name: list_fired_of_scopes
-- bounds instead of `=`, so that the order comes from the index of scopes
SELECT a.id, s.client, s.project, a.rule, a.subject, a.level, a.sentence, a.advice, a.fired_at, a.seen_at, a.told_at, a.told,
       a.over_at, a.acknowledged_at, a.acknowledged_by, a.note
  FROM unnest(%(scopes)s::int[]) AS o (scope)
 CROSS JOIN LATERAL (SELECT * FROM alarm
                      WHERE (scope, id) < (o.scope, %(before)s) AND scope >= o.scope AND fired_at IS NOT NULL
                        AND (NOT %(over)s OR over_at IS NOT NULL)
                      ORDER BY scope DESC, id DESC LIMIT %(limit)s) a
  JOIN scope s ON s.id = a.scope
 ORDER BY a.id DESC LIMIT %(limit)s;

-- name: load_alarm
SELECT a.id, s.client, s.project, a.rule, a.subject, a.level, a.sentence, a.advice, a.fired_at, a.seen_at, a.told_at, a.told,
       a.over_at, a.acknowledged_at, a.acknowledged_by, a.note
  FROM alarm a JOIN scope s ON s.id = a.scope
 WHERE a.id = %(id)s AND a.fired_at IS NOT NULL;

-- name: list_deliveries
SELECT channel, event, number, sent_at FROM alarm_delivery WHERE alarm = %(alarm)s ORDER BY sent_at DESC, channel LIMIT 100;

-- name: note_delivery
INSERT INTO alarm_delivery (alarm, scope, channel, event, number, sent_at)
SELECT id, scope, %(channel)s, %(event)s, %(number)s, clock() FROM alarm WHERE id = %(alarm)s
ON CONFLICT DO NOTHING;

-- name: last_round
SELECT at, clock() - at AS age FROM alarm_round;
