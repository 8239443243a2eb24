-- The phases that documents go through.

-- name: list_phases
SELECT name, label, unit, kind, shown FROM phase_kind ORDER BY ordinal;
