//! What both databases understand: statements with `?1`, `?2`, ..., and rows of five kinds of values.

use super::{Result, StoreError};
use std::sync::Arc;

/// A value of a column or of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// One connection.
pub(super) trait Db {
    /// Carries out one statement; how many rows it changed.
    fn execute(&self, sql: &str, values: &[Value]) -> Result<u64>;
    /// All rows that one statement gives.
    fn rows(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>>;
    /// Carries out statements without values.
    fn batch(&self, sql: &str) -> Result<()>;
    /// Begins a transaction. Without `is_synced` it may be lost with the machine's power.
    fn begin(&self, is_synced: bool) -> Result<()>;
    /// Ends it.
    fn commit(&self) -> Result<()>;
    /// Forgets it. Nothing can be done where that fails.
    fn rollback(&self);
    /// Tells every node, when the transaction is there, of a job that ended, or with an empty text of work.
    fn tell(&self, job: &str) -> Result<()>;
    /// Whether several nodes may use the database.
    fn is_shared(&self) -> bool;

    /// The only row, if there is one.
    fn row(&self, sql: &str, values: &[Value]) -> Result<Option<Row>> {
        Ok(self.rows(sql, values)?.into_iter().next())
    }

    /// A number that is there whatever the rows are, such as a count.
    fn number(&self, sql: &str, values: &[Value]) -> Result<u64> {
        self.row(sql, values)?.map_or(Ok(0), |row| row.at(0))
    }
}

/// A row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) names: Arc<[String]>,
    pub(super) values: Vec<Value>,
}

impl Row {
    /// The value of a column.
    pub(super) fn get<T: FromValue>(&self, name: &str) -> Result<T> {
        let at = self.names.iter().position(|known| known == name).unwrap_or(usize::MAX);
        self.at(at)
    }

    /// The value of a column by its place.
    pub(super) fn at<T: FromValue>(&self, at: usize) -> Result<T> {
        let value = self.values.get(at).and_then(T::from_value);
        value.ok_or_else(|| StoreError::Database(format!("column {at} of {:?} has another kind of value", self.names)))
    }
}

/// What a value can be taken as.
pub(super) trait FromValue: Sized {
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Option<i64> {
        match value {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<u64> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<bool> {
        i64::from_value(value).map(|number| number != 0)
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<f64> {
        match value {
            Value::Real(number) => Some(*number),
            _ => None,
        }
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<String> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: &Value) -> Option<Vec<u8>> {
        match value {
            Value::Blob(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Option<T>> {
        match value {
            Value::Null => Some(None),
            other => T::from_value(other).map(Some),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Int(number.into())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        // Sizes of files and counts: none is larger.
        Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(is_so: bool) -> Value {
        Value::Int(is_so.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Real(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.into())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Value {
        Value::Text(text.clone())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<&Vec<u8>> for Value {
    fn from(bytes: &Vec<u8>) -> Value {
        Value::Blob(bytes.clone())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Value {
        Value::Blob(bytes)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl<T: Clone + Into<Value>> From<&Option<T>> for Value {
    fn from(value: &Option<T>) -> Value {
        value.clone().into()
    }
}

/// The values of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::db::Value::from($value)),*] };
}
pub(super) use values;
