//! The `pgqueue-gateway` binary: settings, subcommands, exit codes.

mod api_table;
mod check;
mod datahub;
mod dev;
mod environment;
mod failure;
mod jdbc_url;
mod logging;
mod migrate;
mod serve;
mod service_links;
mod settings;

use std::process::ExitCode;

use failure::Failure;
use settings::{Cli, Command};

/// Returns memory of large requests to the system, and turns an impossible allocation into an
/// error where the system's allocator would end the process (storage.md Invariant 8).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match settings::from_process().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("pgqueue-gateway: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    logging::start(cli.log_format, &cli.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the runtime: {error}")))?;
    match cli.command {
        Command::Serve(config) => runtime.block_on(serve::run(config)),
        Command::Dev(options) => dev::run(&runtime, options),
        Command::Migrate(database) => runtime.block_on(migrate::run(database)),
        Command::Check(database) => runtime.block_on(check::run(database)),
        Command::ApiTable => {
            api_table::run();
            Ok(())
        }
    }
}
