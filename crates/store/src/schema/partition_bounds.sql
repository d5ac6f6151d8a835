-- The bounds of the time partitions of $1, from the text that Postgres prints for them:
-- FOR VALUES FROM ('lower') TO ('upper'), MINVALUE and MAXVALUE in place of a literal, or DEFAULT.
-- Unbounded is NULL. The literals are in the session's time zone and say so.
SELECT bound = 'DEFAULT' AS is_default,
       CASE WHEN lower_text NOT IN ('infinity', '-infinity')
            THEN (extract(epoch FROM lower_text::timestamptz) * 1000000)::bigint END AS lower_micros,
       CASE WHEN upper_text NOT IN ('infinity', '-infinity')
            THEN (extract(epoch FROM upper_text::timestamptz) * 1000000)::bigint END AS upper_micros
  FROM (SELECT bound,
               substring(bound FROM 'FROM \(''([^'']*)''\)') AS lower_text,
               substring(bound FROM 'TO \(''([^'']*)''\)')   AS upper_text
          FROM (SELECT pg_get_expr(child.relpartbound, child.oid) AS bound
                  FROM pg_inherits i
                  JOIN pg_class child ON child.oid = i.inhrelid
                 WHERE i.inhparent = $1::regclass) printed) parsed
