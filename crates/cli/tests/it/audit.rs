//! What Postgres itself saw: triggers write down every change of a committed offset and of a group,
//! in the transaction that makes it. Then the checks of that against what the members saw.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use kafka_protocol::{messages::ConsumerProtocolAssignment, protocol::Decodable};
use sqlx::{Connection, PgConnection};

use crate::{
    load::Record,
    members::{Entry, Event, History},
};

const TRIGGERS: &str = "
    CREATE SCHEMA audit;
    CREATE TABLE audit.committed (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(),
        consumer_group text, partition_id int, before bigint, after bigint);
    CREATE FUNCTION audit.committed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO audit.committed (consumer_group, partition_id, before, after)
        VALUES (coalesce(NEW.consumer_group, OLD.consumer_group), coalesce(NEW.partition_id, OLD.partition_id),
            OLD.offset_value, NEW.offset_value);
        RETURN NULL;
    END $$;
    CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON queue.metadata_queue_consumer_offset
        FOR EACH ROW EXECUTE FUNCTION audit.committed();
    CREATE TABLE audit.stored (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(),
        group_id text, generation int, state bytea);
    CREATE FUNCTION audit.stored() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO audit.stored (group_id, generation, state) VALUES (NEW.group_id, NEW.generation, NEW.state);
        RETURN NULL;
    END $$;
    CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON queue.metadata_queue_kafka_group
        FOR EACH ROW EXECUTE FUNCTION audit.stored();";

const COMMITTED: &str = "SELECT (extract(epoch FROM at) * 1000000)::bigint, partition_id, before, after \
     FROM audit.committed WHERE consumer_group = $1 ORDER BY id";

const STORED: &str = "SELECT id, (extract(epoch FROM at) * 1000000)::bigint, generation, state->>'state', \
       member->>'client_id', decode(member->>'assignment', 'base64') \
     FROM (SELECT id, at, generation, convert_from(state, 'UTF8')::jsonb AS state \
       FROM audit.stored WHERE group_id = $1) stored \
     LEFT JOIN jsonb_array_elements(state->'members') member ON true ORDER BY id";

/// What became of one group's rows.
pub struct Audit {
    /// Of each partition: when an offset was stored, and which.
    committed: HashMap<i32, Vec<(i64, i64)>>,
    generations: Vec<Generation>,
}

/// A group as it was stored.
#[derive(Debug, Default)]
pub struct Generation {
    pub at: i64,
    pub number: i32,
    pub is_stable: bool,
    /// Partitions by client id.
    pub assignment: BTreeMap<String, Vec<i32>>,
}

/// Before the first member comes.
pub async fn install(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(TRIGGERS).execute(&mut connection).await.unwrap();
}

/// As the group stands now; `None` before it was stored.
pub async fn latest_generation(url: &str, group: &str) -> Option<Generation> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    generations(&mut connection, group).await.pop()
}

/// By partition and time; an offset never goes back or away.
async fn committed(connection: &mut PgConnection, group: &str) -> HashMap<i32, Vec<(i64, i64)>> {
    let rows: Vec<(i64, i32, Option<i64>, Option<i64>)> =
        sqlx::query_as(COMMITTED).bind(group).fetch_all(connection).await.unwrap();
    let mut committed: HashMap<i32, Vec<(i64, i64)>> = HashMap::new();
    for (at, partition, before, after) in rows {
        let after = after.unwrap_or_else(|| panic!("{group}: the offset of partition {partition} was deleted"));
        assert!(before.is_none_or(|before| before <= after), "{group}/{partition}: {before:?} became {after}");
        committed.entry(partition).or_default().push((at, after));
    }
    committed
}

async fn generations(connection: &mut PgConnection, group: &str) -> Vec<Generation> {
    type Row = (i64, i64, Option<i32>, Option<String>, Option<String>, Option<Vec<u8>>);
    let rows: Vec<Row> = sqlx::query_as(STORED).bind(group).fetch_all(connection).await.unwrap();
    let mut generations: BTreeMap<i64, Generation> = BTreeMap::new();
    for (id, at, number, state, client_id, assignment) in rows {
        let number = number.unwrap_or_else(|| panic!("the group {group} was deleted"));
        let generation = generations.entry(id).or_default();
        (generation.at, generation.number) = (at, number);
        generation.is_stable = state.as_deref() == Some("Stable");
        if let (Some(client_id), Some(assignment)) = (client_id, assignment) {
            generation.assignment.insert(client_id, partitions(assignment));
        }
    }
    generations.into_values().collect()
}

fn partitions(assignment: Vec<u8>) -> Vec<i32> {
    let mut bytes = Bytes::from(assignment);
    if bytes.is_empty() {
        return Vec::new();
    }
    let version = i16::from_be_bytes([bytes[0], bytes[1]]);
    let mut bytes = bytes.split_off(2);
    let assignment = ConsumerProtocolAssignment::decode(&mut bytes, version).unwrap();
    assignment.assigned_partitions.into_iter().flat_map(|topic| topic.partitions).collect()
}

impl Audit {
    pub async fn of(url: &str, group: &str) -> Self {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let committed = committed(&mut connection, group).await;
        let audit = Self { committed, generations: generations(&mut connection, group).await };
        audit.check(group);
        audit
    }

    /// Generations never go back, and what one has assigned stays as it is.
    fn check(&self, group: &str) {
        for pair in self.generations.windows(2) {
            assert!(pair[0].number <= pair[1].number, "{group}: {} after {}", pair[1].number, pair[0].number);
            let is_same = pair[0].number == pair[1].number && pair[0].is_stable;
            assert!(!is_same || pair[0].assignment == pair[1].assignment, "{group}: {pair:?}");
        }
        for generation in self.generations.iter().filter(|generation| generation.is_stable) {
            let mut partitions = HashSet::new();
            let assigned = generation.assignment.values().flatten();
            assert!(assigned.into_iter().all(|partition| partitions.insert(partition)), "{group}: {generation:?}");
        }
    }

    pub fn generation(&self) -> i32 {
        self.generations.last().map_or(0, |generation| generation.number)
    }

    /// Whether the partition was assigned to this client before that time.
    fn was_assigned(&self, owner: &Ownership<'_>) -> bool {
        let assigned = self.generations.iter().filter(|generation| generation.is_stable && generation.at <= owner.from);
        assigned
            .filter_map(|generation| generation.assignment.get(owner.client_id))
            .any(|partitions| partitions.contains(&owner.partition))
    }

    /// The offset that was there at that time.
    fn committed_at(&self, partition: i32, at: i64) -> i64 {
        let committed = self.committed.get(&partition).map_or(&[][..], Vec::as_slice);
        let earlier = committed.partition_point(|(stored, _)| *stored <= at);
        earlier.checked_sub(1).map_or(0, |last| committed[last].1)
    }
}

/// A member has a partition from its assignment to its revocation.
#[derive(Debug)]
struct Ownership<'a> {
    client_id: &'a str,
    partition: i32,
    from: i64,
    /// In the order of processing.
    processed: Vec<&'a Record>,
    committed: Vec<Commit>,
}

#[derive(Debug, Clone, Copy)]
struct Commit {
    started: i64,
    acknowledged: i64,
    offset: i64,
}

/// Everything was processed by the group; an acknowledged commit stands; what was processed twice lies
/// after the last one; only the owner processes and commits. How many records were processed twice.
pub fn check_group<'a>(
    group: &str,
    audit: &Audit,
    members: impl Iterator<Item = &'a History>,
    rows: &[Record],
) -> usize {
    let owners: Vec<Ownership<'_>> = members.flat_map(ownerships).collect();
    let stored: HashMap<(i32, i64), &Record> = rows.iter().map(|row| ((row.partition, row.offset), row)).collect();
    let mut processed = HashSet::new();
    let mut count = 0;
    for owner in &owners {
        let at = format!("{group}: {} with partition {} from {}", owner.client_id, owner.partition, owner.from);
        assert!(audit.was_assigned(owner), "{at}: assigned in no generation");
        check_start(&at, owner, &owners);
        check_commits(&at, owner, &owners, audit);
        for pair in owner.processed.windows(2) {
            assert_eq!(pair[0].offset + 1, pair[1].offset, "{at}: a hole or a repeat");
        }
        for record in &owner.processed {
            assert_eq!(stored.get(&(record.partition, record.offset)), Some(record), "{at}: not what is stored");
            processed.insert((record.partition, record.offset));
        }
        count += owner.processed.len();
    }
    let missing: Vec<_> = stored.keys().filter(|key| !processed.contains(*key)).collect();
    assert!(missing.is_empty(), "{group}: {} records were never processed: {missing:?}", missing.len());
    count - processed.len()
}

/// A new owner does not go back to before a commit that was acknowledged until then.
fn check_start(at: &str, owner: &Ownership<'_>, owners: &[Ownership<'_>]) {
    let Some(first) = owner.processed.first() else { return };
    let commits = owners.iter().filter(|other| other.partition == owner.partition).flat_map(|other| &other.committed);
    let before = commits.filter(|commit| commit.acknowledged <= owner.from);
    let committed = before.map(|commit| commit.offset).max().unwrap_or(0);
    assert!(first.offset >= committed, "{at}: began at {} though {committed} was committed", first.offset);
}

fn check_commits(at: &str, owner: &Ownership<'_>, owners: &[Ownership<'_>], audit: &Audit) {
    let later = |other: &&Ownership<'_>| other.partition == owner.partition && other.from > owner.from;
    let next = owners.iter().filter(later).map(|other| other.from).min().unwrap_or(i64::MAX);
    for commit in &owner.committed {
        let stands = audit.committed_at(owner.partition, commit.acknowledged);
        assert!(stands >= commit.offset, "{at}: {commit:?} was acknowledged and {stands} is stored");
        assert!(commit.started <= next, "{at}: {commit:?} was accepted from a former owner, the next came {next}");
    }
}

fn ownerships(history: &History) -> Vec<Ownership<'_>> {
    let mut ended = Vec::new();
    let mut current: BTreeMap<i32, Ownership<'_>> = BTreeMap::new();
    let client_id = history.client_id.as_str();
    for Entry { at, event } in &history.entries {
        match event {
            Event::Assigned(partitions) => {
                for &partition in partitions {
                    let new = Ownership { client_id, partition, from: *at, processed: vec![], committed: vec![] };
                    assert!(current.insert(partition, new).is_none(), "{client_id}: {partition} was assigned twice");
                }
            }
            Event::Revoked(partitions) => {
                ended.extend(partitions.iter().filter_map(|partition| current.remove(partition)));
            }
            Event::Processed(record) => {
                let owner = current.get_mut(&record.partition);
                owner.unwrap_or_else(|| panic!("{client_id} does not own {record:?}")).processed.push(record);
            }
            Event::Committed { started, offsets } => {
                for (partition, offset) in offsets {
                    let commit = Commit { started: *started, acknowledged: *at, offset: *offset };
                    current.get_mut(partition).expect("only what is owned is committed").committed.push(commit);
                }
            }
        }
    }
    ended.extend(current.into_values());
    ended
}
