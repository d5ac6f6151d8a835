//! Finds the server programs: they are on the `PATH` of few machines (Debian keeps them in a
//! directory per major version).

use crate::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// storage.md D16: PostgreSQL 14 and later.
const MINIMUM_MAJOR: u32 = 14;

/// Directories that hold one subdirectory per major version (Debian, Ubuntu; PGDG's RPMs).
const VERSIONED: [(&str, &str); 2] = [("/usr/lib/postgresql", "bin"), ("/usr", "bin")];

/// A directory with `initdb`, `pg_ctl` and `postgres` of one version.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    dir: PathBuf,
}

impl Programs {
    /// The first usable of: the `PATH`, what `pg_config` says, the newest installed version.
    pub(crate) fn find() -> Result<Programs, Error> {
        let mut candidates: Vec<PathBuf> =
            std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        candidates.extend(pg_config_bindir());
        candidates.extend(versioned_dirs());
        match candidates.iter().find(|dir| is_usable(dir)) {
            Some(dir) => Ok(Programs { dir: dir.clone() }),
            None => Err(Error::Missing {
                minimum: MINIMUM_MAJOR,
                searched: "PATH, pg_config --bindir, /usr/lib/postgresql/*/bin".to_owned(),
            }),
        }
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.dir.join(program)
    }
}

fn pg_config_bindir() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").stdin(Stdio::null()).output().ok()?;
    let dir = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(dir.trim()))
}

/// `…/<version>/bin`, newest version first.
fn versioned_dirs() -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for (base, bin) in VERSIONED {
        let Ok(entries) = std::fs::read_dir(base) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let version = name.to_string_lossy().trim_start_matches("pgsql-").parse().ok();
            if let Some(version) = version {
                found.push((version, entry.path().join(bin)));
            }
        }
    }
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, dir)| dir).collect()
}

/// All three programs are there, and `postgres` is new enough.
fn is_usable(dir: &Path) -> bool {
    ["initdb", "pg_ctl", "postgres"].iter().all(|program| dir.join(program).is_file())
        && major_version(dir).is_some_and(|major| major >= MINIMUM_MAJOR)
}

fn major_version(dir: &Path) -> Option<u32> {
    let output = Command::new(dir.join("postgres")).arg("--version").stdin(Stdio::null()).output().ok()?;
    parse_major(&String::from_utf8(output.stdout).ok()?)
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` is 15, `… 18beta1` is 18.
fn parse_major(text: &str) -> Option<u32> {
    let version = text.split("(PostgreSQL)").nth(1)?.trim_start();
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_versions_are_read_from_what_postgres_prints() {
        assert_eq!(parse_major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(parse_major("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(parse_major("something else"), None);
    }

    #[test]
    fn a_directory_without_the_programs_is_not_usable() {
        assert!(!is_usable(Path::new("/nonexistent")));
    }
}
