//! Tokens: who may call, as what, and how much.

use super::db::{values, Db, Row};
use super::{Result, Store, StoreError};

/// How a token begins, so that one that leaked is found.
const PREFIX: &str = "tandem";

/// What the holder of a token may do; each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// See workers, keys and metrics.
    Read,
    /// Submit jobs, and see and cancel those submitted with the same token.
    Submit,
    /// All: keys, and every job.
    Admin,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 3] = [Role::Read, Role::Submit, Role::Admin];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Submit => "submit",
            Role::Admin => "admin",
        }
    }

    /// The role of this word.
    pub fn from_name(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// What is known of a token. The secret is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its public part.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Jobs that it may have waiting and running; any number unless given.
    pub jobs: Option<u64>,
    /// How often it may submit in a minute; any number unless given.
    pub rate: Option<u64>,
    /// When it was made.
    pub created_ms: i64,
    /// Since when it is not valid any more.
    pub revoked_ms: Option<i64>,
}

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What its owner calls it.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Jobs that it may have waiting and running.
    pub jobs: Option<u64>,
    /// How often it may submit in a minute.
    pub rate: Option<u64>,
}

impl Token {
    fn read(row: &Row) -> Result<Token> {
        let role: String = row.get("role")?;
        Ok(Token {
            id: row.get("id")?,
            name: row.get("name")?,
            // The schema admits no other words.
            role: Role::from_name(&role).unwrap_or(Role::Read),
            jobs: row.get("jobs")?,
            rate: row.get("rate")?,
            created_ms: row.get("created_ms")?,
            revoked_ms: row.get("revoked_ms")?,
        })
    }
}

impl Store {
    /// Makes a token. Returns its text, which is nowhere else: `tandem_`, its id, `_` and 256 random bits.
    ///
    /// # Errors
    /// The database failed, or the operating system gives no random numbers.
    pub fn add_token(&self, token: &NewToken, now: i64) -> Result<String> {
        let (id, secret) = (random_hex::<8>()?, random_hex::<32>()?);
        let (token, of, hash) = (token.clone(), id.clone(), blake3::hash(secret.as_bytes()).to_hex().to_string());
        self.write(move |db| {
            let sql =
                "INSERT INTO tokens (id, name, role, hash, jobs, rate, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let NewToken { name, role, jobs, rate } = token;
            db.execute(sql, values![of, name, role.name(), hash, jobs, rate, now])?;
            Ok(())
        })?;
        Ok(format!("{PREFIX}_{id}_{secret}"))
    }

    /// All tokens, in the order in which they were made.
    ///
    /// # Errors
    /// The database failed.
    pub fn tokens(&self) -> Result<Vec<Token>> {
        self.db().rows("SELECT * FROM tokens ORDER BY created_ms, rowid", &[])?.iter().map(Token::read).collect()
    }

    /// The token of this text, if it is valid.
    ///
    /// # Errors
    /// The database failed.
    pub fn token(&self, text: &str) -> Result<Option<Token>> {
        let Some((id, secret)) = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('_')?.split_once('_'))
        else {
            return Ok(None);
        };
        let sql = "SELECT * FROM tokens WHERE id = ?1 AND revoked_ms IS NULL";
        let Some(row) = self.db().row(sql, values![id])? else { return Ok(None) };
        let (token, hash) = (Token::read(&row)?, row.get::<String>("hash")?);
        // The comparison of hashes takes the same time wherever they differ.
        let is_right = blake3::Hash::from_hex(&hash).is_ok_and(|hash| hash == blake3::hash(secret.as_bytes()));
        Ok(is_right.then_some(token))
    }

    /// Ends a token, from the next request on. Its jobs go on. Whether there was such a token.
    ///
    /// # Errors
    /// The database failed.
    pub fn revoke_token(&self, id: &str, now: i64) -> Result<bool> {
        let id = id.to_string();
        let sql = "UPDATE tokens SET revoked_ms = coalesce(revoked_ms, ?2) WHERE id = ?1";
        self.write(move |db| Ok(db.execute(sql, values![id, now])? == 1))
    }

    /// Refuses where a token has as many jobs as it may: asked before a witness is taken in, and again when its job is accepted.
    ///
    /// # Errors
    /// [`StoreError::Revoked`], [`StoreError::TokenJobs`].
    pub fn token_room(&self, id: &str) -> Result<()> {
        room(&**self.db(), id)
    }
}

/// How many jobs of a token wait and run. The words are those of an index, so that it counts no others.
const OPEN: &str = "SELECT count(*) FROM jobs WHERE token = ?1 AND state IN ('pending', 'running')";

/// [`Store::token_room`] within a transaction.
pub(super) fn room(db: &dyn Db, id: &str) -> Result<()> {
    let sql = "SELECT jobs FROM tokens WHERE id = ?1 AND revoked_ms IS NULL";
    let row = db.row(sql, values![id])?.ok_or(StoreError::Revoked)?;
    let Some(most) = row.at::<Option<u64>>(0)? else { return Ok(()) };
    let open = db.number(OPEN, values![id])?;
    if open >= most {
        return Err(StoreError::TokenJobs(most));
    }
    Ok(())
}

pub(super) fn random_hex<const N: usize>() -> Result<String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| StoreError::Foreign(format!("no random numbers: {e}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a token may have is counted for each job that it submits: not among the jobs of a week.
    #[test]
    fn open_jobs_of_a_token_are_found_by_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("jobs.db"), true).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {OPEN}");
        let plan: String = store.db().row(&sql, values!["a"]).unwrap().unwrap().at(3).unwrap();
        assert!(plan.contains("jobs_open_by_token (token=?)"), "{plan}");
    }
}
