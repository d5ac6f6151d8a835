use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use store::{MigrateReport, SchemaProfile, Store, StoreConfig, StoreError};
use testkit::TestDatabase;

use crate::{ADVISORY_LOCKS, number, run, texts};

const DATAHUB_MADE: &str = include_str!("sql/datahub_made.sql");
const SCRIPTS: [&str; 10] = [
    "V001__pgqueue.sql",
    "V002__gateway.sql",
    "V003__groups.sql",
    "V004__kafka_partition_lease.sql",
    "V005__leadership.sql",
    "R__functions.sql",
    "R__kafka_log_end.sql",
    "R__kafka_lock_partitions.sql",
    "R__kafka_keep_ends.sql",
    "R__kafka_refuse_lease.sql",
];

async fn datahub_made() -> (TestDatabase, PgConnection) {
    let database = TestDatabase::empty().await;
    let mut sql = database.connection().await;
    run(&mut sql, DATAHUB_MADE).await;
    (database, sql)
}

fn store_that_migrates_within(database: &TestDatabase, limit: Duration) -> Store {
    database.store_with(|config| config.postgres.migration_timeout = limit)
}

async fn migrate(store: &Store) -> MigrateReport {
    store.schema.migrate().await.unwrap()
}

async fn refusal(store: &Store) -> String {
    match store.schema.migrate().await {
        Err(StoreError::SchemaNotReady(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

/// Definitions of the indexes of the parents, without schema, sorted.
async fn indexes(sql: &mut PgConnection, table: &str) -> Vec<String> {
    texts(
        sql,
        &format!(
            "SELECT replace(indexdef, 'queue.', '') FROM pg_indexes \
              WHERE schemaname = 'queue' AND tablename = 'metadata_queue_{table}' ORDER BY indexname"
        ),
    )
    .await
}

async fn foreign_keys(sql: &mut PgConnection) -> BTreeSet<String> {
    let keys = "SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint \
                 WHERE contype = 'f' AND conparentid = 0";
    let short = |text: String| text.replace("queue.", "").replace("metadata_queue_", "");
    texts(sql, keys).await.into_iter().map(short).collect()
}

const PRODUCER_INDEX: &str = "CREATE INDEX idx_metadata_queue_message_kafka_producer ON ONLY metadata_queue_message \
     USING btree (topic_id, partition_id, kafka_producer_id, enqueue_seq) WHERE (kafka_producer_id IS NOT NULL)";
const UNIQUE_SEQ: &str = "CREATE UNIQUE INDEX metadata_queue_message_topic_id_partition_id_enqueue_seq_en_key \
     ON ONLY metadata_queue_message USING btree (topic_id, partition_id, enqueue_seq, enqueued_at)";

#[tokio::test]
async fn the_lean_profile_has_the_keys_of_d5_and_no_others() {
    let database = TestDatabase::new().await;
    let mut sql = database.connection().await;
    assert_eq!(
        indexes(&mut sql, "message").await,
        [
            "CREATE INDEX idx_metadata_queue_message_dequeue ON ONLY metadata_queue_message \
             USING btree (topic_id, partition_id, priority, enqueue_seq) WHERE (priority <> 5)",
            "CREATE INDEX idx_metadata_queue_message_enqueued_brin ON ONLY metadata_queue_message USING brin (enqueued_at)",
            "CREATE INDEX idx_metadata_queue_message_id_brin ON ONLY metadata_queue_message \
             USING brin (id) WITH (pages_per_range='16')",
            PRODUCER_INDEX,
            UNIQUE_SEQ,
        ]
    );
    let keys = foreign_keys(&mut sql).await;
    assert!(!keys.iter().any(|key| key.starts_with("message ") && key.contains("topic")), "{keys:?}");
    assert!(!keys.iter().any(|key| key.starts_with("message_group_lease")), "{keys:?}");
    assert_eq!(database.store().schema.schema_status().await.unwrap().profile, Some(SchemaProfile::Lean));
}

#[tokio::test]
async fn the_datahub_profile_has_the_keys_that_datahub_makes() {
    let database = TestDatabase::with_profile(SchemaProfile::Datahub).await;
    let mut sql = database.connection().await;
    assert_eq!(
        indexes(&mut sql, "message").await,
        [
            "CREATE INDEX idx_metadata_queue_message_dequeue ON ONLY metadata_queue_message \
             USING btree (topic_id, partition_id, priority, enqueue_seq)",
            "CREATE INDEX idx_metadata_queue_message_enqueued_brin ON ONLY metadata_queue_message USING brin (enqueued_at)",
            PRODUCER_INDEX,
            "CREATE UNIQUE INDEX metadata_queue_message_pkey ON ONLY metadata_queue_message \
             USING btree (id, enqueued_at)",
            UNIQUE_SEQ,
        ]
    );
    // The same keys, and no others, as in a schema that DataHub made and that was migrated.
    let (datahub, mut datahub_sql) = datahub_made().await;
    migrate(datahub.store()).await;
    assert_eq!(foreign_keys(&mut sql).await, foreign_keys(&mut datahub_sql).await);
    for table in ["message", "topic", "consumer_offset", "content_type", "consumer_registration"] {
        assert_eq!(indexes(&mut sql, table).await, indexes(&mut datahub_sql, table).await);
        assert_eq!(columns(&mut sql, table).await, columns(&mut datahub_sql, table).await);
    }
    assert_eq!(database.store().schema.schema_status().await.unwrap().profile, Some(SchemaProfile::Datahub));
}

/// Name, type, default, null and generation of each column, by name.
async fn columns(sql: &mut PgConnection, table: &str) -> Vec<String> {
    texts(
        sql,
        &format!(
            "SELECT concat_ws(' ', column_name, data_type, column_default, is_nullable, is_identity, generation_expression) \
               FROM information_schema.columns WHERE table_name = 'metadata_queue_{table}' ORDER BY column_name"
        ),
    )
    .await
}

#[tokio::test]
async fn both_profiles_have_the_same_columns_and_checks() {
    let lean = TestDatabase::new().await;
    let datahub = TestDatabase::with_profile(SchemaProfile::Datahub).await;
    let (mut one, mut two) = (lean.connection().await, datahub.connection().await);
    let tables =
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'queue' AND tablename !~ '_p[0-9]' ORDER BY 1";
    let checks = "SELECT conrelid::regclass || pg_get_constraintdef(oid) FROM pg_constraint \
                   WHERE contype = 'c' AND conislocal ORDER BY 1";
    assert_eq!(texts(&mut one, tables).await, texts(&mut two, tables).await);
    assert_eq!(texts(&mut one, checks).await, texts(&mut two, checks).await);
    for table in texts(&mut one, tables).await {
        let table = table.trim_start_matches("metadata_queue_");
        assert_eq!(columns(&mut one, table).await, columns(&mut two, table).await, "{table}");
    }
}

#[tokio::test]
async fn a_second_run_changes_nothing_and_waits_for_nobody() {
    let database = TestDatabase::empty().await;
    assert_eq!(migrate(database.store()).await.applied, SCRIPTS);
    let mut sql = database.connection().await;
    let objects =
        "SELECT oid::text || relname || xmin FROM pg_class WHERE relnamespace = 'queue'::regnamespace ORDER BY 1";
    let before = texts(&mut sql, objects).await;
    run(&mut sql, "BEGIN; LOCK TABLE queue.metadata_queue_topic, queue.metadata_queue_consumer_offset").await;
    let report = migrate(database.store()).await;
    run(&mut sql, "ROLLBACK").await;
    assert!(report.applied.is_empty() && report.time_partitions.created.is_empty() && report.indexes_complete);
    assert_eq!(texts(&mut sql, objects).await, before);
}

#[tokio::test]
async fn eight_gateways_that_start_at_once_migrate_once() {
    let database = TestDatabase::empty().await;
    let stores: Vec<Store> = (0..8).map(|_| Store::connect(database.config()).unwrap()).collect();
    let reports = futures::future::join_all(stores.iter().map(migrate)).await;
    let applied: Vec<&String> = reports.iter().flat_map(|report| &report.applied).collect();
    assert_eq!(applied, SCRIPTS);
    let made: Vec<_> = reports.iter().flat_map(|report| &report.time_partitions.created).collect();
    assert_eq!(made.len(), 5, "{made:?}");
    for (report, store) in reports.iter().zip(&stores) {
        assert!(report.time_partitions.covers_now);
        store.schema.schema_status().await.unwrap().require().unwrap();
    }
    let mut sql = database.connection().await;
    assert_eq!(number(&mut sql, ADVISORY_LOCKS).await, 0);
    assert_eq!(number(&mut sql, "SELECT count(*) FROM queue.metadata_queue_kafka_cluster").await, 1);
}

#[tokio::test]
async fn a_changed_script_is_refused_and_a_changed_function_replaced() {
    let database = TestDatabase::new().await;
    let mut sql = database.connection().await;
    let ledger = "queue.metadata_queue_kafka_migration";
    run(&mut sql, &format!("UPDATE {ledger} SET checksum = 'old' WHERE script LIKE 'R%'")).await;
    let missing = database.store().schema.schema_status().await.unwrap().missing;
    assert!(missing[0].contains("R__functions.sql is not applied"), "{missing:?}");
    let functions: Vec<&str> = SCRIPTS.into_iter().filter(|script| script.starts_with('R')).collect();
    assert_eq!(migrate(database.store()).await.applied, functions);

    run(&mut sql, &format!("UPDATE {ledger} SET checksum = 'other' WHERE script LIKE 'V002%'")).await;
    let reason = refusal(database.store()).await;
    assert!(reason.contains("V002__gateway.sql was applied with another content"), "{reason}");
    assert_eq!(database.store().schema.schema_status().await.unwrap().missing, [reason]);
}

#[tokio::test]
async fn the_schema_of_a_newer_gateway_is_left_as_it_is() {
    let database = TestDatabase::new().await;
    let mut sql = database.connection().await;
    let ledger = "queue.metadata_queue_kafka_migration";
    run(&mut sql, &format!("INSERT INTO {ledger} VALUES ('V900__future.sql', 'x')")).await;
    run(&mut sql, &format!("UPDATE {ledger} SET checksum = 'newer' WHERE script LIKE 'R%'")).await;
    assert!(migrate(database.store()).await.applied.is_empty());
    let status = database.store().schema.schema_status().await.unwrap();
    status.require().unwrap();
    assert_eq!(status.notes, ["migration V900__future.sql is of a newer gateway"]);
}

#[tokio::test]
async fn a_schema_that_datahub_made_only_gains() {
    let (database, mut sql) = datahub_made().await;
    let files = "SELECT relid::regclass || ' ' || pg_relation_filenode(relid) \
                   FROM pg_partition_tree('queue.metadata_queue_message') WHERE isleaf ORDER BY 1";
    let rows = "SELECT md5(string_agg(concat_ws('|', id, topic_id, partition_id, routing_key, enqueue_seq, priority, \
                  payload, content_type_id, payload_compression, headers, payload_bytes, enqueued_at), ',' ORDER BY id)) \
                  FROM queue.metadata_queue_message";
    let keys =
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid::regclass::text LIKE '%queue%' ORDER BY 1";
    let before = (texts(&mut sql, files).await, texts(&mut sql, rows).await, texts(&mut sql, keys).await);

    let report = migrate(database.store()).await;
    assert_eq!(report.applied, SCRIPTS[1..]);
    assert!(report.indexes_complete);
    assert_eq!(report.time_partitions.created.len(), 2, "the third and the fourth day ahead");

    assert_eq!(texts(&mut sql, files).await[..4], before.0[..], "no partition was rewritten");
    assert_eq!(texts(&mut sql, rows).await, before.1);
    let keys_now = texts(&mut sql, keys).await;
    assert!(before.2.iter().all(|key| keys_now.contains(key)));
    let others = "SELECT (SELECT count(*) FROM queue.metadata_queue_message_group_lease) \
                       + (SELECT sum(offset_value) FROM queue.metadata_queue_consumer_offset)::bigint \
                       + (SELECT count(*) FROM queue.metadata_queue_consumer_registration)";
    assert_eq!(number(&mut sql, others).await, 10 + 10 + 1);
    let ids = "SELECT count(DISTINCT kafka_topic_id) FROM queue.metadata_queue_topic";
    assert_eq!(number(&mut sql, ids).await, 2);

    database.store().schema.schema_status().await.unwrap().require().unwrap();
    assert_eq!(database.store().catalog.all_topics().await.unwrap().len(), 2);
    priority_may_be_minus_one(&mut sql).await;
    producer_index_is_everywhere(&mut sql).await;
}

/// In every time partition, and nothing else that was not allowed before.
async fn priority_may_be_minus_one(sql: &mut PgConnection) {
    let insert = |priority: i32, days: i32| {
        format!(
            "INSERT INTO queue.metadata_queue_message \
               (topic_id, partition_id, routing_key, enqueue_seq, priority, payload, enqueued_at) \
             VALUES (1, 0, '', 100000 + {days}, {priority}, '', now() + {days} * interval '1 day')"
        )
    };
    for days in 0..=4 {
        run(sql, &insert(-1, days)).await;
        for priority in [-2, 10] {
            let refused = sqlx::raw_sql(AssertSqlSafe(insert(priority, days))).execute(&mut *sql).await;
            assert!(refused.unwrap_err().to_string().contains("message_priority_range"));
        }
    }
    let unchecked = "SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND NOT convalidated";
    assert_eq!(number(sql, unchecked).await, 0);
}

async fn producer_index_is_everywhere(sql: &mut PgConnection) {
    let without = "SELECT count(*) FROM pg_partition_tree('queue.metadata_queue_message') t WHERE NOT EXISTS \
        (SELECT FROM pg_index WHERE indrelid = t.relid AND indisvalid AND indisready \
           AND pg_get_indexdef(indexrelid) LIKE '%kafka_producer_id, enqueue_seq) WHERE (kafka_producer_id IS NOT NULL)')";
    assert_eq!(number(sql, without).await, 0);
    // Each exactly once: a partition that inherits the index must not get a second one.
    let twice = "SELECT count(*) FROM (SELECT FROM pg_index WHERE pg_get_indexdef(indexrelid) LIKE '%kafka_producer_id%' \
        GROUP BY indrelid HAVING count(*) > 1) twice";
    assert_eq!(number(sql, twice).await, 0);
}

#[tokio::test]
async fn datahubs_own_set_up_adds_nothing_to_a_lean_schema() {
    let database = TestDatabase::new().await;
    let mut sql = database.connection().await;
    let objects = "SELECT relname::text FROM pg_class ORDER BY 1";
    let before = texts(&mut sql, objects).await;
    // Its set-up creates each object if it does not exist, by these names.
    let create = DATAHUB_MADE.split("\nDO $$").next().unwrap();
    let create = create
        .replace("CREATE SCHEMA", "CREATE SCHEMA IF NOT EXISTS")
        .replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
        .replace("CREATE INDEX", "CREATE INDEX IF NOT EXISTS")
        .replace("('application/avro')", "('application/avro') ON CONFLICT DO NOTHING");
    run(&mut sql, &create).await;
    assert_eq!(texts(&mut sql, objects).await, before);
}

#[tokio::test]
async fn any_legal_schema_and_prefix_will_do_and_two_can_share_a_database() {
    let database = TestDatabase::empty().await;
    let longest = "p".repeat(24);
    for (schema, prefix) in [("order", "select"), ("order", longest.as_str()), ("_s9", "_9")] {
        let with_profile = |profile| {
            database.store_with(|config| {
                (config.postgres.schema, config.postgres.table_prefix) = (schema.to_owned(), prefix.to_owned());
                config.postgres.schema_profile = profile;
            })
        };
        migrate(&with_profile(SchemaProfile::Datahub)).await;
        // Finds the tables of the first and leaves their keys alone.
        let store = with_profile(SchemaProfile::Lean);
        migrate(&store).await;
        let status = store.schema.schema_status().await.unwrap();
        status.require().unwrap();
        assert_eq!(status.profile, Some(SchemaProfile::Datahub));
        assert_eq!(store.cluster.next_producer_id().await.unwrap(), 1);
    }
    let mut sql = database.connection().await;
    let cut = "SELECT count(*) FROM pg_class WHERE length(relname) > 62 AND relkind IN ('r', 'p', 'S')";
    assert_eq!(number(&mut sql, cut).await, 0);
    let public = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(number(&mut sql, public).await, 0, "nothing outside the schema");
}

#[tokio::test]
async fn a_long_reader_delays_the_migration_but_not_the_other_clients() {
    let (database, mut sql) = datahub_made().await;
    let mut reader = database.connection().await;
    run(&mut reader, "BEGIN; SELECT count(*) FROM queue.metadata_queue_message").await;

    let writing = tokio::spawn(async move {
        let mut longest = Duration::ZERO;
        for seq in 0..40 {
            let start = Instant::now();
            let insert =
                "INSERT INTO queue.metadata_queue_message (topic_id, partition_id, routing_key, enqueue_seq, payload)";
            run(&mut sql, &format!("{insert} VALUES (1, 0, '', {}, '')", 200_000 + seq)).await;
            longest = longest.max(start.elapsed());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        longest
    });
    let gave_up = store_that_migrates_within(&database, Duration::from_secs(2)).schema.migrate().await.unwrap_err();
    assert!(matches!(gave_up, StoreError::Contended(_)), "{gave_up}");
    assert!(gave_up.to_string().contains("columns of message"), "{gave_up}");
    let longest = writing.await.unwrap();
    assert!(longest < Duration::from_millis(1500), "a writer waited {longest:?}");

    let second = tokio::spawn({
        let store = database.store().clone();
        async move { migrate(&store).await }
    });
    tokio::time::sleep(Duration::from_millis(1200)).await;
    run(&mut reader, "COMMIT").await;
    assert_eq!(second.await.unwrap().applied, SCRIPTS[1..]);
}

#[tokio::test]
async fn an_index_that_cannot_be_built_now_is_built_later() {
    let (database, mut sql) = datahub_made().await;
    migrate(database.store()).await;
    // As after an interrupted build: one part is there but unusable, another is missing.
    run(&mut sql, "DROP INDEX queue.idx_metadata_queue_message_kafka_producer").await;
    run(
        &mut sql,
        "CREATE INDEX idx_metadata_queue_message_kafka_producer ON ONLY queue.metadata_queue_message \
           (topic_id, partition_id, kafka_producer_id, enqueue_seq) WHERE kafka_producer_id IS NOT NULL",
    )
    .await;
    let mut writer = database.connection().await;
    run(&mut writer, "BEGIN; LOCK TABLE queue.by_hand_1 IN ROW EXCLUSIVE MODE").await;
    let oid = number(&mut sql, "SELECT 'queue.by_hand_1'::regclass::oid::bigint").await;
    run(&mut sql, "SET lock_timeout = 200").await;
    let interrupted = format!(
        "CREATE INDEX CONCURRENTLY idx_metadata_queue_message_kafka_producer_{oid} ON queue.by_hand_1 \
           (topic_id, partition_id, kafka_producer_id, enqueue_seq) WHERE kafka_producer_id IS NOT NULL"
    );
    sqlx::raw_sql(AssertSqlSafe(interrupted)).execute(&mut sql).await.unwrap_err();
    run(&mut writer, "COMMIT").await;

    let status = database.store().schema.schema_status().await.unwrap();
    status.require().expect("works without");
    assert_eq!(status.notes, ["the index of idempotent producers is still being built"]);
    assert!(database.store().schema.build_indexes().await.unwrap());
    producer_index_is_everywhere(&mut sql).await;
    assert!(database.store().schema.schema_status().await.unwrap().notes.is_empty());
}

#[tokio::test]
async fn a_migration_that_was_interrupted_goes_on_where_it_was() {
    let (database, mut sql) = datahub_made().await;
    migrate(database.store()).await;
    // Every step of V002 was done, its row was not written.
    run(&mut sql, "DELETE FROM queue.metadata_queue_kafka_migration").await;
    let cluster = database.store().cluster.cluster_id().await.unwrap();
    assert_eq!(migrate(database.store()).await.applied, SCRIPTS[1..]);
    let again = Store::connect(database.config()).unwrap();
    assert_eq!(again.cluster.cluster_id().await.unwrap(), cluster);
}

#[tokio::test]
async fn what_is_not_pgqueue_is_refused_in_words() {
    let (database, mut sql) = datahub_made().await;
    let refused = async |sql: &mut PgConnection, change: &str, words: &str| {
        let mut transaction_free = database.connection().await;
        run(&mut transaction_free, change).await;
        let reason = refusal(database.store()).await;
        assert!(reason.contains(words), "{reason}");
        assert_eq!(database.store().schema.schema_status().await.unwrap().missing, [reason]);
        assert_eq!(number(sql, "SELECT count(*) FROM pg_class WHERE relname LIKE '%kafka%'").await, 0);
    };
    let rename = "ALTER TABLE queue.metadata_queue_topic RENAME COLUMN aggressive_retention TO other";
    refused(&mut sql, rename, "_topic in schema queue has no column aggressive_retention").await;
    let drop = "DROP TABLE queue.metadata_queue_consumer_registration";
    refused(&mut sql, drop, "aggressive_retention").await;
    run(&mut sql, "ALTER TABLE queue.metadata_queue_topic RENAME COLUMN other TO aggressive_retention").await;
    refused(&mut sql, "SELECT 1", "no table …_consumer_registration").await;

    let plain = TestDatabase::empty().await;
    let mut sql = plain.connection().await;
    run(&mut sql, &DATAHUB_MADE.split("\nDO $$").next().unwrap().replace(") PARTITION BY RANGE (enqueued_at)", ")"))
        .await;
    assert!(refusal(plain.store()).await.contains("not partitioned by RANGE (enqueued_at)"));
}

#[tokio::test]
async fn a_start_without_migration_is_told_what_is_missing() {
    let database = TestDatabase::empty().await;
    let missing = async || database.store().schema.schema_status().await.unwrap().missing;
    assert_eq!(missing().await, ["schema queue does not exist: run migrate"]);
    let mut sql = database.connection().await;
    run(&mut sql, "CREATE SCHEMA queue").await;
    assert_eq!(missing().await, ["schema queue has no tables with the prefix metadata_queue: run migrate"]);
    run(&mut sql, &DATAHUB_MADE.replace("CREATE SCHEMA queue;", "")).await;
    let not_applied = |script: &str| format!("migration {script} is not applied: run migrate");
    assert_eq!(missing().await, SCRIPTS[1..].iter().map(|script| not_applied(script)).collect::<Vec<_>>());
    migrate(database.store()).await;
    assert!(missing().await.is_empty());
    let partitions = texts(
        &mut sql,
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'queue.metadata_queue_message'::regclass",
    );
    for partition in partitions.await {
        run(&mut sql, &format!("DROP TABLE {partition} CASCADE")).await;
    }
    assert!(missing().await[0].starts_with("no time partition of message takes rows of now"));
}

#[tokio::test]
async fn a_user_without_privileges_starts_on_a_migrated_schema_and_is_told_on_an_empty_one() {
    let (database, empty) = (TestDatabase::new().await, TestDatabase::empty().await);
    let mut sql = database.connection().await;
    let role = format!("limited_{}", uuid::Uuid::new_v4().simple());
    run(
        &mut sql,
        &format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA queue TO {role}; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA queue TO {role}; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA queue TO {role}"
        ),
    )
    .await;
    let as_role = |url: &str| {
        let (_, address) = url.split_once('@').unwrap();
        Store::connect(StoreConfig::new(format!("postgres://{role}:secret@{address}"))).unwrap()
    };
    let limited = as_role(database.url());
    assert!(migrate(&limited).await.applied.is_empty());
    limited.cluster.next_producer_id().await.unwrap();
    let error = as_role(empty.url()).schema.migrate().await.unwrap_err();
    assert!(matches!(error, StoreError::Denied(_)), "{error}");
    limited.close().await;
    run(&mut sql, &format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test]
async fn a_migrator_that_died_leaves_no_lock() {
    let database = TestDatabase::empty().await;
    let cut_off = database.store().clone();
    let migrating = tokio::spawn(async move { cut_off.schema.migrate().await });
    tokio::time::sleep(Duration::from_millis(120)).await;
    migrating.abort();
    let _ = migrating.await;
    let start = Instant::now();
    let report = migrate(&store_that_migrates_within(&database, Duration::from_secs(10))).await;
    assert!(report.time_partitions.covers_now && start.elapsed() < Duration::from_secs(10));

    let mut sql = database.connection().await;
    run(&mut sql, "DELETE FROM queue.metadata_queue_kafka_migration").await;
    let mut holder = PgConnection::connect(database.url()).await.unwrap();
    run(&mut holder, "BEGIN; LOCK TABLE queue.metadata_queue_consumer_offset").await;
    let waiting = tokio::spawn({
        let store = store_that_migrates_within(&database, Duration::from_secs(20));
        async move { store.schema.migrate().await }
    });
    tokio::time::sleep(Duration::from_millis(700)).await;
    let kill = ADVISORY_LOCKS.replace("count(*)", "count(pg_terminate_backend(l.pid))");
    assert_eq!(number(&mut sql, &kill).await, 1, "the migrator holds its lock");
    run(&mut holder, "COMMIT").await;
    let lost = waiting.await.unwrap().unwrap_err();
    assert!(matches!(lost, StoreError::Unavailable(_)), "noticed before the next step: {lost}");
    migrate(database.store()).await;
}
