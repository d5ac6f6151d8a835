//! Consumer groups while gateways and Postgres are killed (storage.md D8): every record is processed
//! at least once, nothing twice that was committed, and members keep their places.

use std::time::{Duration, Instant};

use local_postgres::StopMode;
use rand::{Rng, SeedableRng, rngs::StdRng};
use sqlx::{Connection, PgConnection};
use store::NewTopic;
use testkit::TestDatabase;

use crate::{
    audit::{self, Audit, check_group, latest_generation},
    load::{Load, check_stored, rounds, stored},
    members::{GroupConfig, Member, now},
    process::GatewayProcess,
};

pub const TOPIC: &str = "chaos-groups";
const PARTITIONS: i32 = 6;
const STEADY_MEMBERS: usize = 3;
/// Nothing that happens here takes longer, on a machine that is busy with other things too.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// The default. A shorter one runs out on a busy machine without any fault.
pub const LEASE: Duration = Duration::from_secs(6);

/// Groups whose members stay, with more patience than any of the faults lasts. Their coordinator
/// slots are 28 and 33 of 64, so that each of two gateways coordinates one.
const STEADY: [GroupConfig; 2] = [
    GroupConfig {
        id: "steady-range",
        topic: TOPIC,
        assignment_strategy: "range",
        session_timeout: Duration::from_secs(120),
    },
    GroupConfig {
        id: "steady-cooperative",
        topic: TOPIC,
        assignment_strategy: "cooperative-sticky",
        session_timeout: Duration::from_secs(120),
    },
];
/// A group whose members come and go.
const CHANGING: GroupConfig = GroupConfig {
    id: "changing",
    topic: TOPIC,
    assignment_strategy: "cooperative-sticky",
    session_timeout: Duration::from_secs(6),
};

#[tokio::test(flavor = "multi_thread")]
async fn groups_survive_the_ends_of_their_gateway_and_of_postgres() {
    let _alone = crate::ALONE.lock().await;
    let database = prepared().await;
    let mut gateway = start(database.url(), 1);
    let mut run = Run::start(database.url(), gateway.bootstrap()).await;
    for round in 0..rounds(6) {
        run.pause(LEASE).await;
        match round % 3 {
            0 => {
                gateway.kill();
                gateway.restart();
            }
            1 => {
                database.server().stop(StopMode::Immediate).unwrap();
                run.pause(Duration::from_millis(600)).await;
                database.server().restart().unwrap();
            }
            _ => {
                assert!(gateway.terminate().success());
                gateway.restart();
                run.progress().await;
            }
        }
        run.change_members();
    }
    run.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_survive_the_end_of_either_of_two_gateways() {
    let _alone = crate::ALONE.lock().await;
    let database = prepared().await;
    let mut gateways = [start(database.url(), 1), start(database.url(), 2)];
    let bootstrap = gateways.each_ref().map(GatewayProcess::bootstrap).join(",");
    let mut run = Run::start(database.url(), bootstrap).await;
    for round in 0..rounds(4) {
        run.pause(LEASE).await;
        let victim = &mut gateways[run.random.random_range(0..2)];
        match round % 3 {
            2 => assert!(victim.terminate().success()),
            _ => victim.kill(),
        }
        if round % 2 == 0 {
            run.progress().await;
        } else {
            run.pause(LEASE).await;
        }
        victim.restart();
        run.change_members();
    }
    run.finish().await;
}

/// A database with the topic, and triggers that watch it.
pub async fn prepared() -> TestDatabase {
    let database = TestDatabase::on_private_server().await;
    let topic = NewTopic {
        name: TOPIC.to_owned(),
        partition_count: PARTITIONS,
        retention_max_age_seconds: 0,
        configs: Default::default(),
    };
    database.store().catalog.create_topic(&topic).await.unwrap();
    audit::install(database.url()).await;
    database
}

pub fn start(database_url: &str, node_id: u32) -> GatewayProcess {
    let (node_id, lease) = (node_id.to_string(), LEASE.as_millis().to_string());
    let options = ["--node-id", &node_id, "--coordinator-lease-ms", &lease];
    GatewayProcess::start(database_url, &[&options[..], &["--group-initial-rebalance-delay-ms", "500"]].concat())
}

/// Producers and groups at work.
pub struct Run {
    url: String,
    bootstrap: String,
    random: StdRng,
    load: Load,
    steady: Vec<Member>,
    changing: Vec<Member>,
    /// Members that were told to leave.
    left: Vec<Member>,
    /// The generations of the steady groups, and how often each of their members saw a rebalance.
    settled: (Vec<i32>, Vec<usize>),
}

impl Run {
    /// Returns when the steady groups have come to rest.
    pub async fn start(url: &str, bootstrap: String) -> Self {
        let seed = rand::random();
        println!("chaos seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let load = Load::start(&bootstrap, TOPIC, PARTITIONS, PARTITIONS as usize, Duration::from_millis(20));
        let mut member = |group: &GroupConfig, number: usize| {
            Member::start(&bootstrap, group, format!("{}-{number}", group.id), random.random())
        };
        let steady = STEADY.iter().flat_map(|group| (0..STEADY_MEMBERS).map(move |number| (group, number)));
        let steady = steady.map(|(group, number)| member(group, number)).collect();
        let changing = vec![member(&CHANGING, 0)];
        let settled = Default::default();
        let mut run = Self { url: url.to_owned(), bootstrap, random, load, steady, changing, left: vec![], settled };
        for group in &STEADY {
            wait("equal shares", || run.is_shared_equally(group)).await;
        }
        run.progress().await;
        run.settled = run.places().await;
        run
    }

    async fn is_shared_equally(&self, group: &GroupConfig) -> bool {
        let Some(generation) = latest_generation(&self.url, group.id).await else { return false };
        let shares: Vec<usize> = generation.assignment.values().map(Vec::len).collect();
        generation.is_stable && shares == [PARTITIONS as usize / STEADY_MEMBERS; STEADY_MEMBERS]
    }

    async fn places(&self) -> (Vec<i32>, Vec<usize>) {
        let mut generations = Vec::new();
        for group in &STEADY {
            generations.push(latest_generation(&self.url, group.id).await.unwrap().number);
        }
        (generations, self.steady.iter().map(Member::rebalances).collect())
    }

    /// Not longer than this.
    pub async fn pause(&mut self, longest: Duration) {
        tokio::time::sleep(longest.mul_f64(self.random.random())).await;
    }

    /// A member of the changing group joins, or one of several leaves.
    pub fn change_members(&mut self) {
        let count = self.changing.len();
        if count == 1 || count < 4 && self.random.random() {
            let client_id = format!("{}-{}", CHANGING.id, count + self.left.len());
            self.changing.push(Member::start(&self.bootstrap, &CHANGING, client_id, self.random.random()));
        } else {
            let member = self.changing.swap_remove(self.random.random_range(0..count));
            member.leave();
            self.left.push(member);
        }
    }

    /// Waits until each steady member, and somebody of the changing group, has a commit acknowledged
    /// that was sent after this call.
    pub async fn progress(&self) {
        let since = now();
        let has_committed = |member: &Member| member.last_commit() > since;
        wait("a commit of every member", async || {
            self.steady.iter().all(has_committed) && self.changing.iter().any(has_committed)
        })
        .await;
    }

    pub async fn finish(mut self) {
        let acked = self.load.finish().await;
        let groups: Vec<&str> = STEADY.iter().chain([&CHANGING]).map(|group| group.id).collect();
        let behind = "SELECT count(*) FROM unnest($1::text[]) g CROSS JOIN \
               (SELECT partition_id, max(enqueue_seq) AS last FROM queue.metadata_queue_message GROUP BY 1) m \
             LEFT JOIN queue.metadata_queue_consumer_offset o ON o.consumer_group = g AND o.partition_id = m.partition_id \
             WHERE o.offset_value IS DISTINCT FROM m.last";
        let mut connection = PgConnection::connect(&self.url).await.unwrap();
        wait("everything committed", async || {
            sqlx::query_scalar::<_, i64>(behind).bind(&groups).fetch_one(&mut connection).await.unwrap() == 0
        })
        .await;
        let places = self.places().await;

        self.left.append(&mut self.changing);
        self.left.append(&mut self.steady);
        self.left.iter().for_each(Member::leave);
        let histories = self.left.into_iter().map(Member::history);
        let histories: Vec<_> = tokio::task::block_in_place(|| histories.collect());
        let rows = stored(&self.url, TOPIC).await;
        check_stored(&rows, &acked);
        println!("{} acknowledged, {} stored", acked.len(), rows.len());
        for group in groups {
            let members = histories.iter().filter(|history| history.client_id.starts_with(group));
            let audit = Audit::of(&self.url, group).await;
            let repeats = check_group(group, &audit, members, &rows);
            println!("{group}: generation {}, {repeats} records processed twice", audit.generation());
        }
        assert_eq!(places, self.settled, "the steady groups: generations, rebalances seen by each member");
    }
}

/// For what comes about by itself; looks often.
pub async fn wait(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
