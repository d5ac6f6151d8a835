//! PostgreSQL refuses to run as root, so root runs it as somebody else.

use crate::Error;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Whom the server runs as: ourselves, or when we are root an unprivileged user.
#[derive(Debug, Clone)]
pub(crate) enum OsUser {
    Ourselves,
    Other { name: String, uid: u32, gid: u32 },
}

impl OsUser {
    /// `postgres` if it exists, else `nobody`.
    pub(crate) fn for_server() -> Result<OsUser, Error> {
        let ourselves = fs::metadata("/proc/self").map_err(|e| Error::io("/proc/self", e))?.uid();
        if ourselves != 0 {
            return Ok(OsUser::Ourselves);
        }
        let passwd = fs::read_to_string("/etc/passwd").map_err(|e| Error::io("/etc/passwd", e))?;
        ["postgres", "nobody"].iter().find_map(|name| look_up(&passwd, name)).ok_or(Error::NoUnprivilegedUser)
    }

    /// A command that runs as this user, in a directory that it can read.
    pub(crate) fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).env("LC_ALL", "C").env_remove("PGDATA").env_remove("PGPORT");
        if let OsUser::Other { uid, gid, .. } = self {
            command.uid(*uid).gid(*gid);
        }
        command
    }

    /// Gives a file or directory to this user.
    pub(crate) fn own(&self, path: &Path) -> Result<(), Error> {
        match self {
            OsUser::Ourselves => Ok(()),
            OsUser::Other { uid, gid, .. } => chown(path, Some(*uid), Some(*gid)).map_err(|e| Error::io(path, e)),
        }
    }

    /// Fails when a directory on the way to `path` is closed to this user, which PostgreSQL itself
    /// would only report as a permission problem of some file.
    pub(crate) fn check_reach(&self, path: &Path) -> Result<(), Error> {
        let OsUser::Other { name, uid, gid } = self else {
            return Ok(());
        };
        for ancestor in path.ancestors().filter(|ancestor| ancestor.is_absolute()) {
            let meta = fs::metadata(ancestor).map_err(|e| Error::io(ancestor, e))?;
            let enter = match meta {
                ref meta if meta.uid() == *uid => 0o100,
                ref meta if meta.gid() == *gid => 0o010,
                _ => 0o001,
            };
            if meta.permissions().mode() & enter == 0 {
                return Err(Error::Unreachable { user: name.clone(), blocked: ancestor.to_owned() });
            }
        }
        Ok(())
    }
}

/// passwd(5): `name:password:uid:gid:…`.
fn look_up(passwd: &str, wanted: &str) -> Option<OsUser> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        (name == wanted).then(|| OsUser::Other { name: name.to_owned(), uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_looked_up_by_their_whole_name() {
        let passwd = "root:x:0:0::/root:/bin/sh\npostgres2:x:7:8::/:/bin/sh\npostgres:x:104:110::/:/bin/sh\n";
        match look_up(passwd, "postgres") {
            Some(OsUser::Other { uid, gid, .. }) => assert_eq!((uid, gid), (104, 110)),
            other => panic!("{other:?}"),
        }
        assert!(look_up(passwd, "nobody").is_none());
    }
}
