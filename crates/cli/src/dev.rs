//! `dev`: a private Postgres, its schema and a gateway, with one command.

use std::{
    env,
    fs::{self, OpenOptions, Permissions},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use gateway::Handle;
use local_postgres::{Error, LocalPostgres, Settings};
use tokio::runtime::Runtime;

use crate::{failure::Failure, serve, settings::DevOptions};

const DEFAULT_DATA_DIR: &str = ".dev/data";

/// Not within the runtime, because starting and stopping Postgres blocks.
pub(crate) fn run(runtime: &Runtime, options: DevOptions) -> Result<(), Failure> {
    let postgres = start_postgres(options.data_dir.as_deref()).map_err(Failure::failed)?;
    write_url(&postgres.dir().join("url"), &postgres.url())?;
    let mut config = options.config;
    config.store.postgres.database_url = Some(postgres.url());
    let tables = format!("{}.{}", config.store.postgres.schema, config.store.postgres.table_prefix);
    let url = postgres.url();
    let served = runtime.block_on(serve::run_and_tell(config, |handle| say_what_to_try(handle, &url, &tables)));
    drop(postgres);
    served
}

fn start_postgres(data_dir: Option<&Path>) -> Result<LocalPostgres, Error> {
    if let Some(dir) = data_dir {
        return LocalPostgres::start(dir, Settings::default());
    }
    match LocalPostgres::start(DEFAULT_DATA_DIR, Settings::default()) {
        // Root's own home, usually, and Postgres does not run as root: the data goes where its user can go, with a
        // link to it at the usual place.
        Err(Error::Unreachable { .. }) => {
            let outside = outside_data_dir();
            link(Path::new(DEFAULT_DATA_DIR), &outside)
                .map_err(|source| Error::Io { path: DEFAULT_DATA_DIR.into(), source })?;
            LocalPostgres::start(outside, Settings::default())
        }
        started => started,
    }
}

/// One for each working directory.
fn outside_data_dir() -> PathBuf {
    let mut hasher = DefaultHasher::new();
    env::current_dir().unwrap_or_default().hash(&mut hasher);
    PathBuf::from(format!("/var/lib/pgqueue-gateway-dev-{:016x}", hasher.finish()))
}

/// Makes `from` a link to `to`; an empty directory may stand there.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    if fs::read_link(from).is_ok_and(|target| target == to) {
        return Ok(());
    }
    if let Some(parent) = from.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::remove_dir(from) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(to, from)
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

fn say_what_to_try(handle: &Handle, url: &str, tables: &str) {
    let (kafka, http) = (handle.kafka_addr(), handle.http_addr());
    let text = format!(
        "
Kafka on {kafka}, health on http://{http}/health/ready
Postgres at {url}

Try, in another terminal:
  seq 1 100000 | kcat -P -b {kafka} -t lines
  kcat -C -b {kafka} -t lines -e | tail -3
  psql \"{url}\" -c \"select partition_id, enqueue_seq, convert_from(payload, 'UTF8') from {tables}_message order by id desc limit 5\"

Ctrl-C ends both; the data stays and the next run goes on with it.
"
    );
    // The gateway runs all the same when standard output is closed.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
