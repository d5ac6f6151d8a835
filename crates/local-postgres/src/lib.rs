//! A private PostgreSQL server in a directory of its own, for `pgqueue-gateway dev` and for tests.
//!
//! It listens on a free loopback port (password authentication; the password is in the directory,
//! readable by its owner only) and on a Unix socket in the directory. One process at a time owns a
//! directory; a server that an owner left running when it was killed is taken over by the next.
//!
//! ```text
//! <dir>/data       the cluster        <dir>/postgres.log   the server's log
//! <dir>/password   of user postgres   <dir>/lock           held by the owner
//! ```

mod error;
mod os_user;
mod programs;

pub use error::Error;

use os_user::OsUser;
use programs::Programs;
use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `sockaddr_un.sun_path` holds 107 bytes and a zero; the server appends `/.s.PGSQL.<port>.lock`.
const LONGEST_SOCKET_DIR: usize = 107 - "/.s.PGSQL.65535.lock".len();

/// Another process can take the free port between our look and the server's bind.
const START_ATTEMPTS: u32 = 5;

/// How a private server is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `false`: a crash of the machine (not of the server) may lose data. For tests.
    pub fsync: bool,
    /// Stop the server and remove the directory when this process ends, however it ends. For tests.
    pub ephemeral: bool,
    /// Further lines of `postgresql.conf`: name and value, the value as SQL would have it unquoted.
    pub extra: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { fsync: true, ephemeral: false, extra: Vec::new() }
    }
}

/// How to stop (`pg_ctl stop -m`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Ends the sessions, writes a checkpoint.
    Fast,
    /// As a crash: no checkpoint, the next start recovers from the log.
    Immediate,
}

/// A running (or stopped) private server. Dropping it stops the server.
#[derive(Debug)]
pub struct LocalPostgres {
    dir: PathBuf,
    settings: Settings,
    user: OsUser,
    programs: Programs,
    port: u16,
    password: String,
    _lock: File,
    guard: Option<Child>,
}

impl LocalPostgres {
    /// Makes the cluster in `dir` if it is not there yet, and starts it.
    ///
    /// # Errors
    /// PostgreSQL missing, the directory not usable or in use, or what `initdb` and `pg_ctl` say.
    pub fn start(dir: impl AsRef<Path>, settings: Settings) -> Result<LocalPostgres, Error> {
        let programs = Programs::find()?;
        let user = OsUser::for_server()?;
        let dir = prepare_dir(dir.as_ref(), &user)?;
        let lock = lock(&dir)?;
        let password = if dir.join("data").exists() {
            let path = dir.join("password");
            fs::read_to_string(&path).map_err(|e| Error::io(path, e))?.trim().to_owned()
        } else {
            initialise(&dir, &settings, &user, &programs)?
        };
        let mut server = LocalPostgres { dir, settings, user, programs, port: 0, password, _lock: lock, guard: None };
        server.take_over_or_launch()?;
        if server.settings.ephemeral {
            server.guard = Some(server.spawn_guard()?);
        }
        Ok(server)
    }

    /// `postgres://…` of the database `postgres`, as superuser, over loopback TCP.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The same for another database. The name must need no escaping.
    #[must_use]
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// Loopback TCP port; stays the same over `stop` and `restart`.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory that everything is in.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The server's log file.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.dir.join("postgres.log")
    }

    /// Stops the server; harmless when it is stopped.
    ///
    /// # Errors
    /// What `pg_ctl` says, for example when the server does not end within a minute.
    pub fn stop(&self, mode: StopMode) -> Result<(), Error> {
        if !self.is_running() {
            return Ok(());
        }
        let mode = match mode {
            StopMode::Fast => "fast",
            StopMode::Immediate => "immediate",
        };
        self.pg_ctl("stop", &["-w", "-t", "60", "-m", mode])
    }

    /// Starts the stopped server again on the same port; harmless when it is running.
    ///
    /// # Errors
    /// What `pg_ctl` and the server's log say.
    pub fn restart(&self) -> Result<(), Error> {
        if self.is_running() { Ok(()) } else { self.launch() }
    }

    /// Does a server run on this directory?
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.pg_ctl("status", &[]).is_ok()
    }

    fn take_over_or_launch(&mut self) -> Result<(), Error> {
        if self.is_running() {
            // Its owner was killed. With our settings, not with those of its last start:
            self.stop(StopMode::Fast)?;
        }
        let mut attempt = 1;
        loop {
            self.port = free_port()?;
            match self.launch() {
                Err(_) if attempt < START_ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    fn launch(&self) -> Result<(), Error> {
        self.write_configuration()?;
        let log = self.log_file();
        let already = fs::metadata(&log).map_or(0, |meta| meta.len());
        let started = self.pg_ctl("start", &["-w", "-t", "60", "-l", &log.to_string_lossy()]);
        started.map_err(|error| match last_fatal_line(&log, already) {
            Some(message) => Error::Program { program: "postgres".to_owned(), message },
            None => error,
        })
    }

    /// Everything that differs from PostgreSQL's defaults, anew at each start.
    fn write_configuration(&self) -> Result<(), Error> {
        let mut lines = vec![
            ("listen_addresses".to_owned(), "127.0.0.1".to_owned()),
            ("port".to_owned(), self.port.to_string()),
            ("unix_socket_directories".to_owned(), self.socket_dir()),
            ("max_connections".to_owned(), "200".to_owned()),
        ];
        if !self.settings.fsync {
            // synchronous_commit stays on: a crash of the server alone must lose nothing.
            for name in ["fsync", "full_page_writes"] {
                lines.push((name.to_owned(), "off".to_owned()));
            }
        }
        lines.extend(self.settings.extra.iter().cloned());
        let text: String =
            lines.iter().map(|(name, value)| format!("{name} = '{}'\n", value.replace('\'', "''"))).collect();
        let path = self.dir.join("data/local.conf");
        fs::write(&path, text).map_err(|e| Error::io(&path, e))?;
        self.user.own(&path)
    }

    /// Empty (no socket) when the path is too long for one.
    fn socket_dir(&self) -> String {
        let dir = self.dir.to_string_lossy().into_owned();
        if dir.len() <= LONGEST_SOCKET_DIR { dir } else { String::new() }
    }

    fn pg_ctl(&self, verb: &str, arguments: &[&str]) -> Result<(), Error> {
        let mut command = self.user.command(&self.programs.path("pg_ctl"), &self.dir);
        command.arg(verb).arg("-D").arg(self.dir.join("data")).args(arguments);
        run(&format!("pg_ctl {verb}"), command)
    }

    /// A process that waits until we are gone (its standard input closes) and then tidies up.
    /// Statics are not dropped when a test binary ends, and nothing is when it is killed.
    fn spawn_guard(&self) -> Result<Child, Error> {
        let mut command = self.user.command(Path::new("/bin/sh"), Path::new("/"));
        command
            .args(["-c", r#"read -r _; "$0" stop -s -w -m immediate -D "$1/data"; rm -rf "$1""#])
            .arg(self.programs.path("pg_ctl"))
            .arg(&self.dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C at the terminal must end the tests, not this.
            .process_group(0);
        command.spawn().map_err(|e| Error::io("/bin/sh", e))
    }
}

impl Drop for LocalPostgres {
    fn drop(&mut self) {
        let mode = if self.settings.ephemeral { StopMode::Immediate } else { StopMode::Fast };
        // Nobody is left to tell: the log has it.
        let _ = self.stop(mode);
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }
}

/// Makes `dir`, owned by the server's user and closed to others; its absolute path.
fn prepare_dir(dir: &Path, user: &OsUser) -> Result<PathBuf, Error> {
    fs::create_dir_all(dir).map_err(|e| Error::io(dir, e))?;
    let dir = dir.canonicalize().map_err(|e| Error::io(dir, e))?;
    user.own(&dir)?;
    fs::set_permissions(&dir, Permissions::from_mode(0o700)).map_err(|e| Error::io(&dir, e))?;
    user.check_reach(&dir)?;
    Ok(dir)
}

fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = File::create(&path).map_err(|e| Error::io(&path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse(dir.to_owned())),
        Err(TryLockError::Error(e)) => Err(Error::io(path, e)),
    }
}

/// `initdb`, the include of our settings, and the password, which is returned. Made apart and then
/// renamed: what an interrupted `initdb` leaves behind is never taken for a cluster.
fn initialise(dir: &Path, settings: &Settings, user: &OsUser, programs: &Programs) -> Result<String, Error> {
    let unfinished = dir.join("data.unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(|e| Error::io(&unfinished, e))?;
    }
    let password = random_password()?;
    let password_file = dir.join("password");
    fs::write(&password_file, &password).map_err(|e| Error::io(&password_file, e))?;
    fs::set_permissions(&password_file, Permissions::from_mode(0o600)).map_err(|e| Error::io(&password_file, e))?;
    user.own(&password_file)?;
    let mut command = user.command(&programs.path("initdb"), dir);
    command
        .args(["--username=postgres", "--encoding=UTF8", "--locale=C"])
        .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
        .arg(format!("--pwfile={}", password_file.display()))
        .args(if settings.fsync { None } else { Some("--no-sync") })
        .arg("--pgdata")
        .arg(&unfinished);
    run("initdb", command)?;
    let configuration = unfinished.join("postgresql.conf");
    let mut text = fs::read_to_string(&configuration).map_err(|e| Error::io(&configuration, e))?;
    text.push_str("\ninclude 'local.conf'\n");
    fs::write(&configuration, text).map_err(|e| Error::io(&configuration, e))?;
    let data = dir.join("data");
    fs::rename(&unfinished, &data).map_err(|e| Error::io(&data, e))?;
    Ok(password)
}

/// 128 bits, as 32 hexadecimal digits.
fn random_password() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| Error::io("/dev/urandom", e))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn free_port() -> Result<u16, Error> {
    let port = |listener: TcpListener| -> io::Result<u16> { Ok(listener.local_addr()?.port()) };
    TcpListener::bind(("127.0.0.1", 0)).and_then(port).map_err(|e| Error::io("127.0.0.1:0", e))
}

fn run(name: &str, mut command: Command) -> Result<(), Error> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| Error::io(command.get_program(), e))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr });
    let message = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").to_owned();
    Err(Error::Program { program: name.to_owned(), message })
}

/// The reason that the server itself gave after the first `already` bytes of its log.
fn last_fatal_line(log: &Path, already: u64) -> Option<String> {
    let bytes = fs::read(log).ok()?;
    let fresh = bytes.get(usize::try_from(already).ok()?..)?;
    let text = String::from_utf8_lossy(fresh);
    text.lines().rfind(|line| line.contains("FATAL:")).map(str::to_owned)
}
