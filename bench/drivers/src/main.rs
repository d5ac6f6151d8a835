//! The same two things by one driver or the other, over one connection: a COPY of a file, and single
//! rows, each with its own commit.
//!
//!     drivers sqlx|tokio-postgres URL COPY-STATEMENT FILE INSERT-STATEMENT ROWS
//!
//! COPY-STATEMENT reads FILE from STDIN. INSERT-STATEMENT has one parameter, a bigint: 1 to ROWS.
//! Prints the seconds of the COPY and the median milliseconds of an INSERT.

use std::{
    env,
    error::Error,
    fs,
    pin::pin,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::SinkExt;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What a writer of the gateway sends at once.
const CHUNK: usize = 256 * 1024;

struct Load {
    url: String,
    copy: String,
    data: Bytes,
    insert: String,
    rows: i64,
}

impl Load {
    fn chunks(&self) -> impl Iterator<Item = Bytes> {
        (0..self.data.len()).step_by(CHUNK).map(|at| self.data.slice(at..self.data.len().min(at + CHUNK)))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let [driver, url, copy, file, insert, rows] =
        env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "six arguments, see the source")?;
    let load = Load { url, copy, data: fs::read(file)?.into(), insert, rows: rows.parse()? };
    let (copied, mut inserted) = match driver.as_str() {
        "sqlx" => by_sqlx(&load).await?,
        "tokio-postgres" => by_tokio_postgres(&load).await?,
        other => return Err(format!("no such driver: {other}").into()),
    };
    inserted.sort_unstable();
    println!("{} {}", copied.as_secs_f64(), inserted[inserted.len() / 2].as_secs_f64() * 1000.0);
    Ok(())
}

async fn by_sqlx(load: &Load) -> Outcome<(Duration, Vec<Duration>)> {
    let mut connection = PgConnection::connect(&load.url).await?;
    let start = Instant::now();
    let mut copying = connection.copy_in_raw(&load.copy).await?;
    for chunk in load.chunks() {
        copying.send(chunk).await?;
    }
    copying.finish().await?;
    let copied = start.elapsed();
    let mut inserted = Vec::new();
    for row in 1..=load.rows {
        let start = Instant::now();
        sqlx::query(AssertSqlSafe(load.insert.as_str())).bind(row).execute(&mut connection).await?;
        inserted.push(start.elapsed());
    }
    Ok((copied, inserted))
}

async fn by_tokio_postgres(load: &Load) -> Outcome<(Duration, Vec<Duration>)> {
    let (client, connection) = tokio_postgres::connect(&load.url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let start = Instant::now();
    let mut copying = pin!(client.copy_in(&load.copy).await?);
    for chunk in load.chunks() {
        copying.send(chunk).await?;
    }
    copying.finish().await?;
    let copied = start.elapsed();
    let statement = client.prepare(&load.insert).await?;
    let mut inserted = Vec::new();
    for row in 1..=load.rows {
        let start = Instant::now();
        client.execute(&statement, &[&row]).await?;
        inserted.push(start.elapsed());
    }
    Ok((copied, inserted))
}
