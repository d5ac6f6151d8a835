//! The subcommands as people call them: what they print, how they end.

use std::{
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use testkit::TestDatabase;

fn gateway(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgqueue-gateway"));
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("PGQUEUE_GATEWAY_") || name_text.starts_with("DATAHUB_PGQUEUE_") {
            command.env_remove(&name);
        }
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Ends with this code after one line on standard error that contains `words`.
fn assert_fails(output: &Output, code: i32, words: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(words), "{stderr}");
}

/// Sends SIGTERM and returns the exit code; fails if the process takes more than a few seconds.
fn terminate(child: &mut Child) -> Option<i32> {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(start.elapsed() < Duration::from_secs(10), "still running");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads standard output up to the line that contains `words`.
fn wait_for_line(child: &mut Child, words: &str) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(words)), "it ended without {words:?}");
}

#[test]
fn settings_are_refused_with_code_2_and_the_reason() {
    let run = |arguments: &[&str], environment: &[(&str, &str)]| {
        gateway(arguments).envs(environment.iter().copied()).output().unwrap()
    };
    assert_fails(&run(&["serve"], &[]), 2, "--database-url");
    assert_fails(&run(&["check"], &[]), 2, "--database-url");
    assert_fails(&run(&["check"], &[("PGQUEUE_GATEWAY_SCHEEMA", "q")]), 2, "PGQUEUE_GATEWAY_SCHEEMA");
    let datahub = [("DATAHUB_PGQUEUE_DATASOURCE_URL", "jdbc:mysql://db/hub")];
    assert_fails(&run(&["check"], &datahub), 2, "DATAHUB_PGQUEUE_DATASOURCE_URL");
    let url = ["serve", "--database-url", "postgres://127.0.0.1:1/x"];
    assert_fails(&run(&[&url[..], &["--listen", "0.0.0.0:0"]].concat(), &[]), 2, "--advertise");
    assert_fails(&run(&[&url[..], &["--schema", "a b"]].concat(), &[]), 2, "a b");
    assert_eq!(run(&["serve", "--nonsense"], &[]).status.code(), Some(2));
}

/// In every container of a Kubernetes namespace with a Service `pgqueue-gateway`.
#[test]
fn a_service_of_the_same_name_does_not_stop_the_start() {
    let service = [
        ("PGQUEUE_GATEWAY_SERVICE_HOST", "10.0.0.1"),
        ("PGQUEUE_GATEWAY_SERVICE_PORT", "9092"),
        ("PGQUEUE_GATEWAY_SERVICE_PORT_KAFKA", "9092"),
        ("PGQUEUE_GATEWAY_PORT", "tcp://10.0.0.1:9092"),
        ("PGQUEUE_GATEWAY_PORT_9092_TCP", "tcp://10.0.0.1:9092"),
        ("PGQUEUE_GATEWAY_PORT_9092_TCP_ADDR", "10.0.0.1"),
        ("PGQUEUE_GATEWAY_PORT_9092_TCP_PORT", "9092"),
        ("PGQUEUE_GATEWAY_PORT_9092_TCP_PROTO", "tcp"),
    ];
    let output = gateway(&["api-table"]).envs(service).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let misspelt = gateway(&["api-table"]).envs(service).env("PGQUEUE_GATEWAY_PORT", "9092").output().unwrap();
    assert_fails(&misspelt, 2, "unknown setting PGQUEUE_GATEWAY_PORT;");
}

#[test]
fn an_unreachable_database_is_one_clear_line() {
    let output = gateway(&["check", "--database-url", "postgres://postgres@127.0.0.1:1/x"]).output().unwrap();
    assert_fails(&output, 1, "Postgres is not available");
}

#[test]
fn a_limit_of_open_files_that_leaves_none_for_clients_is_one_clear_line() {
    let serve = [env!("CARGO_BIN_EXE_pgqueue-gateway"), "serve", "--database-url", "postgres://127.0.0.1:1/x"];
    let output = Command::new("prlimit").arg("--nofile=50").args(serve).output().unwrap();
    assert_fails(&output, 1, "the limit of open files is 50");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_says_what_is_missing_and_migrate_mends_it() {
    let database = TestDatabase::empty().await;
    let run = |subcommand: &str| gateway(&[subcommand, "--database-url", database.url()]).output().unwrap();
    let before = run("check");
    assert_eq!(before.status.code(), Some(1));
    assert!(text(&before.stdout).contains("PostgreSQL"), "{before:?}");
    assert!(text(&before.stdout).contains("schema queue does not exist: run migrate"), "{before:?}");
    let migrated = run("migrate");
    assert_eq!(migrated.status.code(), Some(0), "{migrated:?}");
    let after = run("check");
    assert_eq!(after.status.code(), Some(0), "{after:?}");
    assert!(text(&after.stdout).ends_with("usable\n"), "{after:?}");
    assert!(text(&run("migrate").stdout).contains("up to date"));
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_ends_in_order_on_sigterm() {
    let database = TestDatabase::new().await;
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--log-format", "json"];
    let mut child = gateway(&arguments).env("PGQUEUE_GATEWAY_DATABASE_URL", database.url()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("serving") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "it ended");
        assert!(line.starts_with('{'), "not JSON: {line}");
    }
    assert_eq!(terminate(&mut child), Some(0));
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("SIGTERM"), "{rest}");
}

/// Twice, because the second run finds the cluster of the first.
#[test]
fn dev_starts_a_postgres_of_its_own() {
    let dir = Directory(std::env::temp_dir().join(format!("pgqueue-gateway-dev-{}", std::process::id())));
    let data = dir.0.to_str().unwrap();
    for _ in 0..2 {
        let arguments = ["dev", "--data-dir", data, "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"];
        let mut child = gateway(&arguments).stderr(Stdio::null()).spawn().unwrap();
        wait_for_line(&mut child, "kcat -P -b 127.0.0.1:");
        assert!(std::fs::read_to_string(dir.0.join("url")).unwrap().starts_with("postgres://"));
        assert_eq!(terminate(&mut child), Some(0));
    }
}

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
