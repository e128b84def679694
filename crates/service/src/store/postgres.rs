//! Jobs in a database of PostgreSQL, which any number of nodes use.
//!
//! A statement waits for its answer only for a while: who is cut off is told so, and the next statement connects anew.

use super::db::{Db, Row, Value};
use super::{Result, StoreError, MIGRATIONS};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::error::Error;
use std::future::{poll_fn, Future};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{to_sql_checked, IsNull, ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the server is told of that: a node that was stopped within a transaction keeps its rows from others no longer.
const BOUNDS: &str = "SET statement_timeout = 10000; SET idle_in_transaction_session_timeout = 10000";

/// How long it may take to connect.
const CONNECT: Duration = Duration::from_secs(3);

/// After a connection that failed, so long the next one fails at once.
const PAUSE: Duration = Duration::from_millis(300);

/// Between two looks whether the connection that listens is alive.
const ALIVE: Duration = Duration::from_secs(5);

/// Where nodes hear of each other's jobs.
const CHANNEL: &str = "tandem";

/// Milliseconds since 1970 by the database's clock.
pub(super) const NOW: &str = "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)";

/// Which database, and how to speak to it.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    tls: MakeRustlsConnect,
}

/// One connection, which is made again when it breaks outside a transaction.
pub(super) struct Postgres {
    address: Address,
    runtime: Runtime,
    link: RefCell<Option<Link>>,
    is_within: Cell<bool>,
    broken: Cell<Option<Instant>>,
}

struct Link {
    client: Client,
    statements: HashMap<String, Statement>,
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(number) if *ty == Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
            Value::Int(number) => number.to_sql_checked(ty, out),
            Value::Real(number) => number.to_sql_checked(ty, out),
            Value::Text(text) => text.to_sql_checked(ty, out),
            Value::Blob(bytes) => bytes.to_sql_checked(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // Each kind is checked when it is written.
        true
    }

    to_sql_checked!();
}

fn value(row: &tokio_postgres::Row, at: usize) -> std::result::Result<Value, tokio_postgres::Error> {
    let ty = row.columns()[at].type_();
    Ok(if *ty == Type::INT8 {
        row.try_get::<_, Option<i64>>(at)?.into()
    } else if *ty == Type::INT4 {
        row.try_get::<_, Option<i32>>(at)?.map(i64::from).into()
    } else if *ty == Type::FLOAT8 {
        row.try_get::<_, Option<f64>>(at)?.into()
    } else if *ty == Type::BYTEA {
        row.try_get::<_, Option<Vec<u8>>>(at)?.into()
    } else {
        row.try_get::<_, Option<String>>(at)?.into()
    })
}

/// What failed, with its cause, which this library keeps apart.
fn told(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(of) = cause {
        text = format!("{text}: {of}");
        cause = of.source();
    }
    text
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> StoreError {
        match error.code() {
            Some(code) if *code == SqlState::DISK_FULL => StoreError::Full(told(&error)),
            // Two nodes held each other up, and this one gave way.
            Some(code) if *code == SqlState::T_R_DEADLOCK_DETECTED => StoreError::Lost(told(&error)),
            Some(code) if !error.is_closed() && !code.code().starts_with("57P") => StoreError::Database(told(&error)),
            _ => StoreError::Lost(told(&error)),
        }
    }
}

fn runtime() -> Result<Runtime> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|e| StoreError::Foreign(format!("cannot speak to the database: {e}")))
}

async fn within<T>(
    time: Duration,
    work: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
) -> Result<T> {
    let late = |_| StoreError::Lost(format!("no answer within {} s", time.as_secs()));
    Ok(tokio::time::timeout(time, work).await.map_err(late)??)
}

/// Whether a host is this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
        Host::Unix(_) => true,
    }
}

impl Address {
    /// The database of a URL, such as `postgres://user:password@host/name?sslmode=require`.
    pub(super) fn new(url: &str, tls: rustls::ClientConfig) -> Result<Address> {
        // What is wrong with it is told without the URL, which may have a password.
        let wrong = |why: &str| StoreError::Foreign(format!("database: {why}; expected postgres://user@host/name"));
        // This library has fewer words for what it does: the certificate is always verified, and so is the name in it.
        let url = url.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
        let mut config: Config = url.parse().map_err(|e: tokio_postgres::Error| wrong(&told(&e)))?;
        if config.get_hosts().is_empty() {
            return Err(wrong("the host is missing"));
        }
        // By itself it would go on without TLS where somebody on the way says that the server has none.
        if config.get_ssl_mode() == SslMode::Prefer && !config.get_hosts().iter().all(is_here) {
            config.ssl_mode(SslMode::Require);
        }
        config.connect_timeout(CONNECT).application_name("tandem");
        Ok(Address { config, tls: MakeRustlsConnect::new(tls) })
    }

    pub(super) fn connect(&self) -> Result<Postgres> {
        let (link, is_within, broken) = (RefCell::default(), Cell::new(false), Cell::default());
        let of = Postgres { address: self.clone(), runtime: runtime()?, link, is_within, broken };
        of.open()?;
        Ok(of)
    }

    /// Tells of jobs that ended, by their names, and of work, by an empty text, as long as the process lives. Whatever was missed while
    /// the connection was away is for others to look for: an empty text comes after it.
    pub(super) fn listen(&self, hear: impl Fn(&str)) -> Result<()> {
        let runtime = runtime()?;
        loop {
            // What failed is told by those who write.
            let _ = runtime.block_on(self.heard(&hear));
            std::thread::sleep(PAUSE);
        }
    }

    async fn heard(&self, hear: &impl Fn(&str)) -> Result<()> {
        let (client, mut connection) = within(CONNECT, self.config.connect(self.tls.clone())).await?;
        let hearing = async {
            loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(of))) => hear(of.payload()),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => break,
                }
            }
        };
        let asking = async {
            within(PATIENCE, client.batch_execute(&format!("LISTEN {CHANNEL}"))).await?;
            hear("");
            loop {
                tokio::time::sleep(ALIVE).await;
                within(PATIENCE, client.batch_execute("SELECT 1")).await?;
            }
        };
        // Until one of the two ends.
        let (mut hearing, mut asking) = (pin!(hearing), pin!(asking));
        poll_fn(|context| match hearing.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => asking.as_mut().poll(context),
        })
        .await
    }
}

impl Postgres {
    /// Connects, if it is not.
    fn open(&self) -> Result<()> {
        if self.link.borrow().is_some() {
            return Ok(());
        }
        if self.is_within.get() {
            return Err(StoreError::Lost("the connection broke within a transaction".into()));
        }
        if self.broken.get().is_some_and(|since| since.elapsed() < PAUSE) {
            return Err(StoreError::Lost("it cannot be reached".into()));
        }
        let made: Result<Link> = self.runtime.block_on(async {
            let (client, connection) = within(CONNECT, self.address.config.connect(self.address.tls.clone())).await?;
            // It ends with the client.
            tokio::spawn(connection);
            within(PATIENCE, client.batch_execute(BOUNDS)).await?;
            Ok(Link { client, statements: HashMap::new() })
        });
        self.broken.set(made.is_err().then(Instant::now));
        self.link.replace(Some(made?));
        Ok(())
    }

    /// Does something with the connection, and forgets it where it broke.
    fn with<T>(&self, work: &dyn Fn(&Runtime, &mut Link) -> Result<T>) -> Result<T> {
        let was_open = self.link.borrow().is_some();
        let once = || {
            self.open()?;
            let mut link = self.link.borrow_mut();
            let Some(of) = link.as_mut() else { return Err(StoreError::Ended) };
            let done = work(&self.runtime, of);
            if matches!(done, Err(StoreError::Lost(_))) {
                *link = None;
            }
            done
        };
        match once() {
            // Nobody noticed that it had broken before.
            Err(StoreError::Lost(_)) if was_open && !self.is_within.get() => once(),
            done => done,
        }
    }

    fn query<T>(
        &self,
        sql: &str,
        ask: impl AsyncFn(&Client, &Statement) -> std::result::Result<T, tokio_postgres::Error>,
    ) -> Result<T> {
        self.with(&|runtime, link| {
            runtime.block_on(async {
                let known = link.statements.get(sql).cloned();
                let statement = match known {
                    Some(statement) => statement,
                    None => {
                        let statement = within(PATIENCE, link.client.prepare(&sql.replace('?', "$"))).await?;
                        link.statements.insert(sql.into(), statement.clone());
                        statement
                    }
                };
                within(PATIENCE, ask(&link.client, &statement)).await
            })
        })
    }

    /// Takes the schema to the version of this program, while no other node does.
    pub(super) fn migrate(&self, migrations: &[&str]) -> Result<()> {
        self.begin(true)?;
        let migrated = self.migrate_within(migrations);
        match migrated {
            Ok(()) => self.commit(),
            Err(error) => {
                self.rollback();
                Err(error)
            }
        }
    }

    fn migrate_within(&self, migrations: &[&str]) -> Result<()> {
        self.batch("SELECT pg_advisory_xact_lock(1414415437)")?;
        self.batch("CREATE TABLE IF NOT EXISTS tandem_schema (version BIGINT NOT NULL)")?;
        let version = self.number("SELECT coalesce(max(version), 0) FROM tandem_schema", &[])? as usize;
        if version > migrations.len() {
            let known = migrations.len();
            let why =
                format!("the database's schema has version {version}, this program knows {known}; run a later tandem");
            return Err(StoreError::Foreign(why));
        }
        for (step, sql) in migrations.iter().enumerate().skip(version) {
            self.batch(&translated(sql))?;
            let number = i64::try_from(step + 1).unwrap_or(i64::MAX);
            self.execute("INSERT INTO tandem_schema VALUES (?1)", &[number.into()])?;
        }
        Ok(())
    }

    /// The schema of this program.
    pub(super) fn migrate_all(&self) -> Result<()> {
        self.migrate(&MIGRATIONS)
    }
}

/// A migration in the words of PostgreSQL. Rows of SQLite are numbered by themselves, and so are they here.
fn translated(sql: &str) -> String {
    let sql = sql.replace("INTEGER", "BIGINT").replace(" REAL", " DOUBLE PRECISION").replace(" BLOB ", " BYTEA ");
    sql.replace("\n) STRICT, WITHOUT ROWID;", "\n);").replace("\n) STRICT;", ",\n rowid BIGSERIAL\n);")
}

impl Db for Postgres {
    fn execute(&self, sql: &str, values: &[Value]) -> Result<u64> {
        let values: Vec<_> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        self.query(sql, async |client, statement| client.execute(statement, &values).await)
    }

    fn rows(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        let values: Vec<_> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let rows = self.query(sql, async |client, statement| client.query(statement, &values).await)?;
        let names: Arc<[String]> = match rows.first() {
            None => return Ok(Vec::new()),
            Some(row) => row.columns().iter().map(|column| column.name().to_string()).collect(),
        };
        let read = |row: &tokio_postgres::Row| {
            let values = (0..names.len()).map(|at| value(row, at)).collect::<std::result::Result<_, _>>()?;
            Ok(Row { names: names.clone(), values })
        };
        rows.iter().map(read).collect()
    }

    fn batch(&self, sql: &str) -> Result<()> {
        self.with(&|runtime, link| runtime.block_on(within(PATIENCE, link.client.batch_execute(sql))))
    }

    fn begin(&self, is_synced: bool) -> Result<()> {
        let sql = if is_synced { "BEGIN" } else { "BEGIN; SET LOCAL synchronous_commit = off" };
        self.batch(sql)?;
        self.is_within.set(true);
        Ok(())
    }

    fn commit(&self) -> Result<()> {
        let done = self.batch("COMMIT");
        self.is_within.set(false);
        done
    }

    fn rollback(&self) {
        // Without an answer the connection is given up, and the transaction with it.
        if self.link.borrow().is_some() && self.batch("ROLLBACK").is_err() {
            self.link.replace(None);
        }
        self.is_within.set(false);
    }

    fn tell(&self, job: &str) -> Result<()> {
        self.rows("SELECT CAST(pg_notify('tandem', ?1) AS TEXT)", &[job.into()]).map(drop)
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_elsewhere_is_spoken_to_by_tls_unless_that_is_given_up() {
        let mode = |url: &str| Address::new(url, super::super::server::no_tls()).unwrap().config.get_ssl_mode();
        for here in ["postgres://a@localhost/b", "postgres://a@127.0.0.1/b", "postgres://a@[::1]/b"] {
            assert_eq!(mode(here), SslMode::Prefer, "{here}");
        }
        for there in
            ["postgres://a@db.example/b", "postgres://a@10.0.0.1/b", "postgres://a@localhost,db/b?sslmode=prefer"]
        {
            assert_eq!(mode(there), SslMode::Require, "{there}");
        }
        assert_eq!(mode("postgres://a@db.example/b?sslmode=disable"), SslMode::Disable);
    }
}
