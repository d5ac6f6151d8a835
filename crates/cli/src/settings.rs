//! Flags, environment, and what is refused at start.
//!
//! In order of precedence: flag, `PGQUEUE_GATEWAY_…` variable, DataHub's own variable
//! ([`crate::datahub`]), default.

use std::{collections::BTreeMap, path::PathBuf};

use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use gateway::config::Config;
use store::PostgresConfig;

use crate::{datahub, environment, failure::Failure};

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done, or ended by SIGTERM or SIGINT after running requests had finished
  1  failed: the message says what; `check`: the database is not usable
  2  settings refused: unknown, invalid or contradictory

Every flag is also an environment variable, PGQUEUE_GATEWAY_ and the flag's name in capitals with
underscores; what Kubernetes and Docker set for a Service or container of that name is passed over.
DataHub's variables DATAHUB_PGQUEUE_SCHEMA, _TABLE_PREFIX, _DATASOURCE_URL, _DATASOURCE_USERNAME,
_DATASOURCE_PASSWORD, _MIN_CONNECTIONS, _MAX_CONNECTIONS, _TOPIC_DEFAULT_PARTITION_COUNT and
_PAYLOAD_COMPRESSION apply where neither is given.";

/// Kafka clients read and write the pgQueue tables in Postgres.
#[derive(Debug, Parser)]
#[command(name = "pgqueue-gateway", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Form of the log on standard error
    #[arg(long, global = true, default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// What is logged: a level, or levels by module as in "info,gateway=debug"
    #[arg(long, global = true, default_value = "info,sqlx=error", value_name = "FILTER")]
    pub(crate) log: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    /// One object per line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve Kafka clients
    Serve(Config),
    /// Start a private Postgres, bring up its schema and serve it
    Dev(DevOptions),
    /// Bring the schema up to date and end
    Migrate(PostgresConfig),
    /// Say whether the database is usable and what is missing
    Check(PostgresConfig),
    /// Print the README's table of APIs
    #[command(hide = true)]
    ApiTable,
}

#[derive(Debug, Args)]
pub(crate) struct DevOptions {
    /// Directory of the private Postgres; kept, and used again by the next run [default: .dev/data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) config: Config,
}

/// The settings of this process. Help and usage errors end it here, with clap's own text.
pub(crate) fn from_process() -> Result<Cli, Failure> {
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let command = command(&variables)?;
    let cli = command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = cli.unwrap_or_else(|error| error.exit());
    check(&cli)?;
    Ok(cli)
}

/// The command line, with an environment variable for each flag and DataHub's variables as defaults.
fn command(variables: &BTreeMap<String, String>) -> Result<clap::Command, Failure> {
    let command = environment::with_variables(Cli::command());
    environment::refuse_unknown(&command, variables)?;
    let defaults = datahub::defaults(variables).map_err(Failure::refused)?;
    let with_default = |arg: Arg| match defaults.get(arg.get_id().as_str()) {
        Some(value) => arg.default_value(value.clone()),
        None => arg,
    };
    Ok(command.mut_subcommands(|sub| sub.mut_args(with_default)))
}

fn check(cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Serve(config) => config.check().map_err(Failure::refused),
        Command::Dev(options) if options.config.store.postgres.database_url.is_some() => Err(Failure::refused(
            "`dev` starts a Postgres of its own; use `serve` with --database-url, or unset the URL",
        )),
        Command::Dev(options) => options.config.check().map_err(Failure::refused),
        Command::Migrate(_) | Command::Check(_) | Command::ApiTable => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Cli, String> {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let command = command(&environment).map_err(|failure| failure.message)?;
        let arguments = std::iter::once("pgqueue-gateway").chain(arguments.iter().copied());
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        check(&cli).map_err(|failure| failure.message)?;
        Ok(cli)
    }

    fn serve(arguments: &[&str], environment: &[(&str, &str)]) -> Config {
        match parse(&[&["serve"], arguments].concat(), environment).unwrap().command {
            Command::Serve(config) => config,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn datahub_names_are_defaults_and_flags_win() {
        let datahub = [
            ("DATAHUB_PGQUEUE_SCHEMA", "q"),
            ("DATAHUB_PGQUEUE_TABLE_PREFIX", "p"),
            ("DATAHUB_PGQUEUE_TOPIC_DEFAULT_PARTITION_COUNT", "8"),
            ("DATAHUB_PGQUEUE_PAYLOAD_COMPRESSION", "SNAPPY"),
        ];
        let config = serve(&["--schema", "mine"], &datahub);
        assert_eq!(config.store.postgres.schema, "mine");
        assert_eq!(config.store.postgres.table_prefix, "p");
        assert_eq!(config.server.topics.num_partitions, 8);
        assert_eq!(config.store.append.payload_compression, store::PayloadCompression::Snappy);
    }

    #[test]
    fn unknown_invalid_and_contradictory_settings_are_refused() {
        let refused = |arguments: &[&str], environment: &[(&str, &str)]| parse(arguments, environment).unwrap_err();
        assert!(refused(&["serve"], &[("PGQUEUE_GATEWAY_SCHEME", "q")]).contains("PGQUEUE_GATEWAY_SCHEME"));
        assert!(refused(&["serve"], &[("PGQUEUE_GATEWAY_PORT", "9092")]).contains("PGQUEUE_GATEWAY_PORT"));
        assert!(refused(&["serve", "--num-partitions", "0"], &[]).contains("--num-partitions"));
        assert!(refused(&["serve", "--listen", "0.0.0.0:9092"], &[]).contains("--advertise"));
        assert!(refused(&["dev", "--database-url", "postgres://x"], &[]).contains("serve"));
        assert!(refused(&["serve", "--no-such-flag"], &[]).contains("--no-such-flag"));
    }

    #[test]
    fn the_compression_of_datahub_is_not_case_sensitive_and_others_are_refused() {
        let error = parse(&["serve"], &[("DATAHUB_PGQUEUE_PAYLOAD_COMPRESSION", "ZSTD")]).unwrap_err();
        assert!(error.contains("DATAHUB_PGQUEUE_PAYLOAD_COMPRESSION"), "{error}");
    }
}
