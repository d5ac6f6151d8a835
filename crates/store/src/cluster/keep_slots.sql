-- Renews and takes coordinator slots; $1 instance, $2 lease in seconds.
--
-- fencing also rises for a gateway that takes up again what it has lost in between: that is another
-- tenure. A save that is under way holds its slot's row FOR KEY SHARE: nobody takes it just then
-- (FOR UPDATE), and it is renewed all the same (an UPDATE of other columns).
WITH share AS MATERIALIZED (
    SELECT ceil(count(*)::numeric / greatest(1, (
               SELECT count(*) FROM {kafka_node} WHERE heartbeat_at > now() - $2 * interval '1 second'
           )))::bigint AS fair
    FROM {kafka_coordinator_slot}
), mine AS MATERIALIZED (
    SELECT count(*) AS count FROM {kafka_coordinator_slot} WHERE lock_owner = $1
), free AS MATERIALIZED (
    SELECT slot FROM {kafka_coordinator_slot}
    WHERE lock_owner IS DISTINCT FROM $1 AND locked_until < now()
    ORDER BY slot LIMIT (SELECT greatest(0, fair - count) FROM share, mine)
    FOR UPDATE SKIP LOCKED
), kept AS (
    UPDATE {kafka_coordinator_slot} s
    SET lock_owner = $1, locked_until = now() + $2 * interval '1 second',
        fencing = s.fencing + (s.lock_owner IS DISTINCT FROM $1)::int
    WHERE s.lock_owner = $1 OR s.slot IN (SELECT slot FROM free)
    RETURNING s.slot, s.fencing
), owned AS (
    SELECT s.slot, coalesce(kept.fencing, s.fencing) AS fencing,
        CASE WHEN kept.slot IS NOT NULL THEN $1 WHEN s.lock_owner <> $1 AND s.locked_until > now() THEN s.lock_owner END
            AS owner,
        CASE WHEN kept.slot IS NOT NULL THEN $1 WHEN s.locked_until > now() THEN s.lock_owner END AS instance
    FROM {kafka_coordinator_slot} s LEFT JOIN kept USING (slot)
)
SELECT owned.slot, owned.fencing, owned.owner, share.fair AS fair_share,
    (SELECT n.node_id FROM {kafka_node} n
     WHERE n.instance = owned.instance AND n.heartbeat_at > now() - $2 * interval '1 second') AS node_id
FROM share, owned
ORDER BY owned.slot
