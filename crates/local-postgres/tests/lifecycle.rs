//! One server through its whole life. Needs PostgreSQL's programs; fails without them.

use local_postgres::{Error, LocalPostgres, Settings, StopMode};
use std::net::TcpStream;
use std::path::PathBuf;

fn temporary_dir(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("local-postgres-{name}-{}", std::process::id()))
}

#[test]
fn starts_stops_crashes_restarts_and_is_taken_over() {
    let dir = temporary_dir("life");
    let settings = Settings { fsync: false, ..Settings::default() };
    let server = LocalPostgres::start(&dir, settings.clone()).unwrap();
    let port = server.port();
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert!(server.url().ends_with(&format!("@127.0.0.1:{port}/postgres")));

    assert!(matches!(LocalPostgres::start(&dir, settings.clone()), Err(Error::InUse(_))));

    server.stop(StopMode::Immediate).unwrap();
    assert!(!server.is_running());
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
    server.stop(StopMode::Fast).unwrap();
    server.restart().unwrap();
    TcpStream::connect(("127.0.0.1", port)).unwrap();

    let log = server.log_file();
    drop(server);
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
    assert!(std::fs::read_to_string(log).unwrap().contains("database system is shut down"));

    let again = LocalPostgres::start(&dir, settings).unwrap();
    assert!(again.is_running());
    drop(again);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn an_ephemeral_server_leaves_nothing_behind() {
    let dir = temporary_dir("ephemeral");
    let settings = Settings { fsync: false, ephemeral: true, ..Settings::default() };
    let server = LocalPostgres::start(&dir, settings).unwrap();
    let port = server.port();
    drop(server);
    assert!(!dir.exists());
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
}

#[test]
fn a_setting_that_postgres_refuses_is_told_in_its_own_words() {
    let dir = temporary_dir("refused");
    let extra = vec![("no_such_setting".to_owned(), "1".to_owned())];
    let error = LocalPostgres::start(&dir, Settings { extra, ..Settings::default() }).unwrap_err();
    assert!(error.to_string().contains("FATAL"), "{error}");
    std::fs::remove_dir_all(&dir).unwrap();
}
