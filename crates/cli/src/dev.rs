//! `dev`: a private Postgres, its schema and a gateway, with one command.

use std::{
    fs::{OpenOptions, Permissions},
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use gateway::Handle;
use local_postgres::{LocalPostgres, Settings};
use tokio::runtime::Runtime;

use crate::{Failure, serve, settings::DevOptions};

/// Not within the runtime, because starting and stopping Postgres blocks.
pub(crate) fn run(runtime: &Runtime, options: DevOptions) -> Result<(), Failure> {
    let postgres = LocalPostgres::start(&options.data_dir, Settings::default()).map_err(Failure::failed)?;
    write_url(&options.data_dir.join("url"), &postgres.url())?;
    let mut config = options.config;
    config.database.database_url = Some(postgres.url());
    let tables = format!("{}.{}", config.database.schema, config.database.table_prefix);
    let served = runtime.block_on(async {
        let handle = serve::start(config).await?;
        say_what_to_try(&handle, &postgres.url(), &tables);
        serve::until_signal(handle).await
    });
    drop(postgres);
    served
}

/// For `psql "$(cat .dev/data/url)"`. It holds a password, so nobody else may read it.
fn write_url(path: &Path, url: &str) -> Result<(), Failure> {
    let written =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).and_then(|mut file| {
            file.set_permissions(Permissions::from_mode(0o600))?;
            writeln!(file, "{url}")
        });
    written.map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

#[expect(clippy::print_stdout, reason = "the output of this subcommand")]
fn say_what_to_try(handle: &Handle, url: &str, tables: &str) {
    let kafka = handle.kafka_addr();
    println!(
        "
Kafka on {kafka}, health on http://{}/health/ready
Postgres at {url}

Try, in another terminal:
  seq 1 100000 | kcat -P -b {kafka} -t lines
  kcat -C -b {kafka} -t lines -e | tail -3
  psql \"{url}\" -c \"select partition_id, enqueue_seq, convert_from(payload, 'UTF8') from {tables}_message order by id desc limit 5\"

Ctrl-C ends both; the data stays and the next run goes on with it.
",
        handle.http_addr(),
    );
}
