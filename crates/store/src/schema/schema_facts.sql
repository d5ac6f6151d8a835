-- One row about schema $1, ledger $2, message table $3 and producer index $4, all by name and all
-- possibly missing. Needs no privilege on any of them.
SELECT current_setting('server_version')          AS server_version,
       current_setting('server_version_num')::int AS server_version_num,
       EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) AS has_schema,
       to_regclass($2) IS NOT NULL AS has_ledger,
       to_regclass($4) IS NOT NULL AS has_producer_index,
       coalesce((SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($4)), false)
           AS producer_index_is_valid,
       coalesce(pg_get_partkeydef(to_regclass($3)), '') AS partition_key,
       EXISTS (SELECT FROM pg_index WHERE indrelid = to_regclass($3) AND indisprimary)
           AS has_primary_key,
       EXISTS (SELECT FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid,
                    LATERAL (SELECT pg_get_expr(child.relpartbound, child.oid) AS bound) printed
                WHERE i.inhparent = to_regclass($3)
                  AND (bound = 'DEFAULT'
                       OR (coalesce(substring(bound FROM 'FROM \(''([^'']*)''\)')::timestamptz, '-infinity') <= now()
                           AND coalesce(substring(bound FROM 'TO \(''([^'']*)''\)')::timestamptz, 'infinity') > now())))
           AS covers_now
