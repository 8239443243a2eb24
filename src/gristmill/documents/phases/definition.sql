-- The phases that documents go through.

-- name: list_phases
SELECT name, ordinal, label, unit, kind, shown FROM phase_kind ORDER BY ordinal;
