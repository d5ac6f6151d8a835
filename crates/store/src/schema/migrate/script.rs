//! The texts of `/migrations` and how they are cut into steps.

use std::fmt;

use clap::ValueEnum;
use sha2::{Digest, Sha256};

use crate::database::Tables;

/// Which keys the pgQueue tables get when the gateway makes them (storage.md D5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaProfile {
    /// Only the keys that clients need; writes more than twice as fast
    Lean,
    /// The set that DataHub itself makes
    Datahub,
}

impl SchemaProfile {
    pub(super) fn first_script(self) -> &'static Script {
        match self {
            SchemaProfile::Lean => &PGQUEUE_LEAN,
            SchemaProfile::Datahub => &PGQUEUE_DATAHUB,
        }
    }
}

impl fmt::Display for SchemaProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SchemaProfile::Lean => "lean",
            SchemaProfile::Datahub => "datahub",
        })
    }
}

/// A file of `/migrations`.
#[derive(Debug)]
pub(super) struct Script {
    /// File name; what the ledger calls it.
    pub(super) name: &'static str,
    text: &'static str,
}

macro_rules! script {
    ($name:literal) => {
        Script { name: $name, text: include_str!(concat!("../../../../../migrations/", $name)) }
    };
}

static PGQUEUE_LEAN: Script = script!("V001__pgqueue.sql");
static PGQUEUE_DATAHUB: Script = script!("V001__pgqueue.datahub.sql");

/// Makes the pgQueue tables: one of them, and only where there are none.
pub(super) static FIRST: [&Script; 2] = [&PGQUEUE_LEAN, &PGQUEUE_DATAHUB];

/// Applied once each, in this order, after the pgQueue tables are there.
pub(super) static VERSIONED: [Script; 4] = [
    script!("V002__gateway.sql"),
    script!("V003__groups.sql"),
    script!("V004__kafka_partition_lease.sql"),
    script!("V005__leadership.sql"),
];

/// Applied after those, again whenever their text changes.
pub(super) static REPEATABLE: [Script; 5] = [
    script!("R__functions.sql"),
    script!("R__kafka_log_end.sql"),
    script!("R__kafka_lock_partitions.sql"),
    script!("R__kafka_keep_ends.sql"),
    script!("R__kafka_refuse_lease.sql"),
];

/// A part of a script that runs in a transaction of its own.
pub(super) struct Step {
    pub(super) title: String,
    pub(super) sql: String,
}

impl Script {
    /// SHA-256 of the file, hexadecimal; the tokens are not filled in, so it is the same everywhere.
    pub(super) fn checksum(&self) -> String {
        Sha256::digest(self.text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The parts that start with a line `-- step: title`, after a header; or all of it.
    pub(super) fn steps(&self, tables: &Tables) -> Vec<Step> {
        let text = tables.fill_tokens(self.text);
        if !text.contains(STEP) {
            return vec![Step::new(self.name, &text)];
        }
        let parts = text.split(STEP).skip(1);
        parts
            .map(|part| {
                let (title, sql) = part.split_once('\n').unwrap_or((part, ""));
                Step::new(title, sql)
            })
            .collect()
    }
}

const STEP: &str = "-- step: ";

impl Step {
    fn new(title: &str, sql: &str) -> Step {
        Step { title: title.to_owned(), sql: sql.trim().trim_end_matches(';').to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_has_steps_and_no_token_is_left() {
        let tables = Tables::new("q", "mq").unwrap();
        let scripts = FIRST.into_iter().chain(&VERSIONED).chain(&REPEATABLE);
        for script in scripts {
            let steps = script.steps(&tables);
            assert!(!steps.is_empty(), "{}", script.name);
            for step in steps {
                assert!(!step.sql.is_empty() && !step.title.is_empty(), "{}", script.name);
                assert!(!step.sql.contains("__SCHEMA__") && !step.sql.contains("__PREFIX__"));
                // Not every encoding of a database has more.
                assert!(step.sql.is_ascii(), "{}, {}", script.name, step.title);
            }
        }
    }

    #[test]
    fn the_first_script_is_one_step_so_that_it_is_never_half_done() {
        let tables = Tables::new("q", "mq").unwrap();
        assert!(FIRST.iter().all(|script| script.steps(&tables).len() == 1));
    }

    #[test]
    fn every_file_of_the_folder_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");
        let listed: Vec<&str> =
            FIRST.into_iter().chain(&VERSIONED).chain(&REPEATABLE).map(|script| script.name).collect();
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name == "deferred" || listed.contains(&name.as_str()), "{name}");
        }
    }
}
