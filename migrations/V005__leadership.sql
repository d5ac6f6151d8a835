-- Which gateways lead partitions, and since which leader epoch (storage.md D12).
--
-- One row says both and both change together, so no epoch has two sets of leaders. Leadership is a
-- matter of the set alone, so the epoch is the same for all partitions, and the leader_epoch of
-- kafka_partition is not used.

-- step: columns of kafka_cluster (a moment's ACCESS EXCLUSIVE on a table of one row)
ALTER TABLE __SCHEMA__.__PREFIX___kafka_cluster
    ADD COLUMN IF NOT EXISTS leader_epoch int   NOT NULL DEFAULT 0 CHECK (leader_epoch >= 0),
    ADD COLUMN IF NOT EXISTS leaders      int[] NOT NULL DEFAULT '{}';
