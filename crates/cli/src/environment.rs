//! Environment variables: one for each flag, and what is refused.

use std::collections::{BTreeMap, BTreeSet};

use clap::Command;

use crate::{failure::Failure, service_links};

const PREFIX: &str = "PGQUEUE_GATEWAY_";

/// The command line with a variable for each flag of it and of its subcommands.
pub(crate) fn with_variables(command: Command) -> Command {
    of_flags(command).mut_subcommands(of_flags)
}

/// The variable of `--flag-name` is PGQUEUE_GATEWAY_FLAG_NAME.
fn of_flags(command: Command) -> Command {
    command.mut_args(|arg| match arg.get_long() {
        Some(long) => {
            let variable = format!("{PREFIX}{}", long.to_uppercase().replace('-', "_"));
            arg.env(variable)
        }
        None => arg,
    })
}

/// A misspelt variable would otherwise be ignored without a word.
pub(crate) fn refuse_unknown(command: &Command, variables: &BTreeMap<String, String>) -> Result<(), Failure> {
    let settings = names(command);
    let is_unknown =
        |name: &str| name.starts_with(PREFIX) && !settings.contains(name) && !service_links::is_link(name, variables);
    match variables.keys().find(|name| is_unknown(name)) {
        None => Ok(()),
        Some(unknown) => Err(Failure::refused(format!(
            "unknown setting {unknown}; `pgqueue-gateway serve --help` lists all of them"
        ))),
    }
}

/// The variables of all settings.
fn names(command: &Command) -> BTreeSet<&str> {
    let commands = std::iter::once(command).chain(command.get_subcommands());
    commands.flat_map(Command::get_arguments).filter_map(|arg| arg.get_env()?.to_str()).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::settings::Cli;

    #[test]
    fn every_option_has_an_environment_name_made_from_its_flag() {
        let command = with_variables(Cli::command());
        for arg in command.get_subcommands().chain([&command]).flat_map(Command::get_arguments) {
            let long = arg.get_long().expect("only long flags");
            let expected = format!("PGQUEUE_GATEWAY_{}", long.to_uppercase().replace('-', "_"));
            assert_eq!(arg.get_env().and_then(|e| e.to_str()), Some(expected.as_str()), "--{long}");
            assert!(arg.get_help().is_some(), "--{long} is not documented");
        }
        let settings = names(&command);
        for name in ["DATABASE_URL", "LOG_FORMAT", "DATA_DIR", "OFFSETS_RETENTION_CHECK_INTERVAL_MS"] {
            assert!(settings.contains(format!("PGQUEUE_GATEWAY_{name}").as_str()), "{name}");
        }
    }

    #[test]
    fn no_setting_has_the_name_of_a_service_link() {
        let command = with_variables(Cli::command());
        for name in names(&command) {
            assert!(!service_links::is_reserved(name), "{name}");
        }
    }
}
