-- What the doctor asks of any PostgreSQL; nothing here changes anything.

-- name: server
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
       pg_database_size(current_database()) AS size, inet_server_addr() IS NULL AS local,
       (SELECT setting FROM pg_settings WHERE name = 'data_directory') AS folder;  -- null for those who may not know it

-- name: time
SELECT extract(epoch FROM clock_timestamp())::float8;

-- name: vector
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS installed,
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS available;

-- name: long_transactions
-- as long as one is open, no row that died since can be cleaned away
SELECT 'session ' || pid || coalesce(' of ' || nullif(application_name, ''), '') AS who, clock_timestamp() - xact_start AS age
  FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - interval '10 min'
UNION ALL
SELECT 'prepared transaction ' || gid, clock_timestamp() - prepared
  FROM pg_prepared_xacts WHERE database = current_database() AND prepared < clock_timestamp() - interval '10 min'
 ORDER BY age DESC;
