//! `tandem tokens`: who may call a service.

use crate::serve::{settings, Place};
use clap::{Args, Subcommand};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::options::Json;
use tandem_console::report;
use tandem_service::store::{NewToken, Role, Store};

/// The service of a data folder, which may run.
#[derive(Args)]
pub(crate) struct Folder {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    json: Json,
}

#[derive(Subcommand)]
pub(crate) enum Tokens {
    /// Make a token, and print it: it is kept nowhere else
    #[command(after_help = "Examples:\n  tandem tokens add wallet --role submit --jobs 100 --rate 600\n  \
        tandem tokens add prometheus --role read")]
    Add {
        /// What you call it
        name: String,
        /// read: workers, keys and metrics; submit: also jobs of its own; admin: keys and all jobs
        #[arg(long, value_name = "ROLE", default_value = "submit", value_parser = role)]
        role: Role,
        /// Jobs that it may have waiting and running; any number unless given
        #[arg(long, value_name = "JOBS", value_parser = clap::value_parser!(u32).range(1..))]
        jobs: Option<u32>,
        /// Times that it may submit in a minute; any number unless given
        #[arg(long, value_name = "JOBS", value_parser = clap::value_parser!(u32).range(1..))]
        rate: Option<u32>,
        #[command(flatten)]
        folder: Folder,
    },
    /// List the tokens, without their secrets
    #[command(after_help = "Example:\n  tandem tokens list --json")]
    List {
        #[command(flatten)]
        folder: Folder,
    },
    /// End a token, from the next request on; its jobs go on
    #[command(after_help = "Example:\n  tandem tokens revoke 0f1e2d3c4b5a6978")]
    Revoke {
        /// The id of the token: what is between its two '_'
        id: String,
        #[command(flatten)]
        folder: Folder,
    },
}

fn role(text: &str) -> Result<Role, String> {
    Role::from_name(text).ok_or_else(|| format!("expected one of {}", Role::ALL.map(Role::name).join(", ")))
}

impl Folder {
    fn store(&self) -> Outcome<Store> {
        tandem_service::open_store(&settings(&self.place, Vec::new())?).map_err(Failure::input)
    }

    fn tell(&self, value: &serde_json::Value, text: impl FnOnce() -> String) {
        report::result(&if self.json.json { value.to_string() } else { text() });
    }
}

fn failed(error: tandem_service::store::StoreError) -> Failure {
    Failure::input(error.to_string())
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn run(what: &Tokens) -> Outcome {
    match what {
        Tokens::Add { name, role, jobs, rate, folder } => {
            let token =
                NewToken { name: name.clone(), role: *role, jobs: jobs.map(u64::from), rate: rate.map(u64::from) };
            let text = folder.store()?.add_token(&token, now()).map_err(failed)?;
            folder.tell(&json!({"token": text}), || text.clone());
        }
        Tokens::List { folder } => {
            let tokens = folder.store()?.tokens().map_err(failed)?;
            let all: Vec<_> = tokens
                .iter()
                .map(|t| {
                    json!({
                        "id": t.id, "name": t.name, "role": t.role.name(), "jobs": t.jobs, "rate": t.rate,
                        "created_ms": t.created_ms, "revoked_ms": t.revoked_ms,
                    })
                })
                .collect();
            folder.tell(&json!({"tokens": all}), || {
                let most = |bound: Option<u64>| bound.map_or("any".into(), |bound| bound.to_string());
                let state = |revoked: bool| if revoked { "revoked" } else { "valid" };
                let head = ["id", "name", "role", "jobs", "a minute", "state"].map(String::from).to_vec();
                let rows = tokens.iter().map(|t| {
                    let (jobs, rate) = (most(t.jobs), most(t.rate));
                    let state = state(t.revoked_ms.is_some()).into();
                    vec![t.id.clone(), t.name.clone(), t.role.name().into(), jobs, rate, state]
                });
                report::table(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
            });
        }
        Tokens::Revoke { id, folder } => {
            if !folder.store()?.revoke_token(id, now()).map_err(failed)? {
                return Err(Failure::input(format!("no token has the id '{id}'; 'tandem tokens list' has all")));
            }
            folder.tell(&json!({"revoked": id}), || id.clone());
        }
    }
    Ok(())
}
