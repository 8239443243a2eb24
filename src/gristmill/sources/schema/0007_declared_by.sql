-- A source that a settings file names belongs to that file: the settings of another machine or folder do not pause it.

ALTER TABLE source ADD declared_by text;  -- machine and path of the gristmill.toml that names it, or named it last
