//! `migrate`: brings the schema up to date and ends.

use gateway::config::{Config, DatabaseConfig};
use store::{MigrateOptions, Store};

use crate::failure::Failure;

#[expect(clippy::print_stdout, reason = "the output of this subcommand")]
pub(crate) async fn run(database: DatabaseConfig) -> Result<(), Failure> {
    let store = connect(&database)?;
    let options =
        MigrateOptions { profile: gateway::schema_profile(database.schema_profile), ..MigrateOptions::default() };
    let report = store.schema.migrate(&options).await.map_err(Failure::failed)?;
    match report.applied.as_slice() {
        [] => println!("schema {} is up to date", database.schema),
        applied => println!("schema {}: applied {}", database.schema, applied.join(", ")),
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
pub(crate) fn connect(database: &DatabaseConfig) -> Result<Store, Failure> {
    let config = gateway::store_config(database, &Config::defaults().server).map_err(Failure::refused)?;
    Store::connect(config).map_err(Failure::refused)
}
