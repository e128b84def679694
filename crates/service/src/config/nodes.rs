//! The settings of a node among those of a database.

use super::{is_name, Config, NAME};
use serde::Serialize;

impl Config {
    /// Nodes share either both of database and blobs, or neither.
    pub(super) fn check_nodes(&self) -> Result<(), String> {
        if self.database.is_some() != self.blobs.is_some() {
            return Err("database and blobs: nodes share both or neither; expected both or neither".into());
        }
        if self
            .database
            .as_ref()
            .is_some_and(|url| !["postgres://", "postgresql://"].iter().any(|of| url.starts_with(of)))
        {
            return Err(
                "database: expected postgres://user@host/name; leave it out for a file in the data folder".into()
            );
        }
        if self.blobs.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return Err("blobs: expected the path of a folder that begins with /".into());
        }
        match is_name(&self.node) {
            true => Ok(()),
            false => Err(format!("node: '{}': {NAME}", self.node)),
        }
    }
}

/// The machine's name and some digits: two nodes of a machine have different ones.
pub(super) fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
    let host: String = host.trim().chars().filter(plain).take(60).collect();
    let random = crate::blobs::random_name().unwrap_or_default();
    let digits = random.get(..8).map_or_else(|| std::process::id().to_string(), String::from);
    format!("{}-{digits}", if host.is_empty() { "node" } else { &host })
}

/// A URL as it may be seen.
pub(super) fn without_password<S: serde::Serializer>(url: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    let seen = url.as_ref().map(|url| match (url.split_once("://"), url.rfind('@')) {
        (Some((scheme, rest)), Some(at)) if rest.contains('@') => {
            let user = &url[scheme.len() + 3..at];
            format!("{scheme}://{}{}", user.split(':').next().unwrap_or(""), &url[at..])
        }
        _ => url.clone(),
    });
    seen.serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn passwords_are_not_printed() {
        let seen = |url: &str| {
            let file = format!("data = 'd'\nblobs = '/b'\ndatabase = '{url}'");
            let config = Config::read(Some((Path::new("tandem.toml"), &file)), |_| None, []).unwrap();
            assert_eq!((config.database.as_deref(), config.blobs.as_deref()), (Some(url), Some(Path::new("/b"))));
            config.to_toml()
        };
        for url in ["postgres://tandem:s3cr@t@db/x", "postgres://tandem:s3cr%40t@db/x"] {
            let text = seen(url);
            assert!(text.contains("\"postgres://tandem@db/x\"") && !text.contains("s3cr"), "{text}");
        }
        assert!(seen("postgres://db/x").contains("\"postgres://db/x\""));
    }
}
