//! `migrate`: brings the schema up to date and ends.

use store::{PostgresConfig, Store, StoreConfig};

use crate::failure::Failure;

#[expect(clippy::print_stdout, reason = "the output of this subcommand")]
pub(crate) async fn run(postgres: PostgresConfig) -> Result<(), Failure> {
    let store = connect(&postgres)?;
    let report = store.schema.migrate().await.map_err(Failure::failed)?;
    match report.applied.as_slice() {
        [] => println!("schema {} is up to date", postgres.schema),
        applied => println!("schema {}: applied {}", postgres.schema, applied.join(", ")),
    }
    for partition in &report.time_partitions.created {
        println!("made time partition {partition}");
    }
    if !report.indexes_complete {
        println!("an index is still to be built; a running gateway does it, or run this again");
    }
    store.close().await;
    Ok(())
}

/// A store without a server.
pub(crate) fn connect(postgres: &PostgresConfig) -> Result<Store, Failure> {
    let config = StoreConfig { postgres: postgres.clone(), ..StoreConfig::default() };
    Store::connect(config).map_err(Failure::refused)
}
