//! `check`: is the database usable, and if not, what is missing.

use store::PostgresConfig;

use crate::{failure::Failure, migrate};

#[expect(clippy::print_stdout, reason = "the output of this subcommand")]
pub(crate) async fn run(postgres: PostgresConfig) -> Result<(), Failure> {
    let store = migrate::connect(&postgres)?;
    let status = store.schema.schema_status().await.map_err(Failure::failed)?;
    println!("gateway     {}", env!("CARGO_PKG_VERSION"));
    println!("PostgreSQL  {}", status.server_version);
    println!("tables      {}.{}_*", postgres.schema, postgres.table_prefix);
    if let Some(profile) = status.profile {
        println!("profile     {profile}");
    }
    for note in &status.notes {
        println!("note        {note}");
    }
    for missing in &status.missing {
        println!("missing     {missing}");
    }
    store.close().await;
    if !status.missing.is_empty() {
        return Err(Failure::failed("the database is not usable yet"));
    }
    println!("usable");
    Ok(())
}
