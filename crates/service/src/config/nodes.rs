//! The settings of a node among those of a database.

use super::{is_name, Config, NAME};
use crate::objects::{place, OBJECT_MAX, SCHEME};
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
        match &self.blobs {
            Some(blobs) if blobs.starts_with(SCHEME) => drop(place(blobs)?),
            Some(folder) if !folder.starts_with('/') => {
                return Err(format!(
                    "blobs: '{folder}': expected the path of a folder that begins with /, or s3://bucket/prefix"
                ));
            }
            _ => {}
        }
        self.check_bucket()?;
        match is_name(&self.node) {
            true => Ok(()),
            false => Err(format!("node: '{}': {NAME}", self.node)),
        }
    }
}

impl Config {
    fn has_bucket(&self) -> bool {
        self.blobs.as_ref().is_some_and(|blobs| blobs.starts_with(SCHEME))
    }

    /// What was not set is as AWS's tools have it.
    pub(super) fn fill_bucket(&mut self, environment: &impl Fn(&str) -> Option<String>) {
        if !self.has_bucket() {
            return;
        }
        let first = |names: [&str; 2]| names.into_iter().filter_map(environment).find(|value| !value.is_empty());
        self.blobs_endpoint = self.blobs_endpoint.take().or_else(|| first(["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]));
        self.blobs_region = self.blobs_region.take().or_else(|| first(["AWS_REGION", "AWS_DEFAULT_REGION"]));
    }

    fn check_bucket(&self) -> Result<(), String> {
        let set = [
            ("blobs_endpoint", self.blobs_endpoint.is_some()),
            ("blobs_region", self.blobs_region.is_some()),
            ("blobs_ca", self.blobs_ca.is_some()),
            ("blobs_credentials", self.blobs_credentials.is_some()),
        ];
        if let (false, Some((name, _))) = (self.has_bucket(), set.iter().find(|(_, is_set)| *is_set)) {
            return Err(format!("{name}: it is a bucket's; expected blobs = \"s3://bucket/prefix\""));
        }
        match self.blobs_endpoint.as_ref().filter(|url| !url.starts_with("https://") && !url.starts_with("http://")) {
            Some(url) => {
                Err(format!("blobs_endpoint: '{url}': expected https://host, or http://host where no TLS is wanted"))
            }
            None if OBJECT_MAX >> 20 < self.max_key_mib && self.has_bucket() => {
                Err(format!("max_key_mib: {}; a bucket takes {} at most", self.max_key_mib, OBJECT_MAX >> 20))
            }
            None => Ok(()),
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

    /// What is handed out for Kubernetes are settings of nodes with a bucket.
    #[test]
    fn the_settings_for_kubernetes_hold() {
        let text = include_str!("../../../../deploy/kubernetes/tandem.toml");
        let of = |name: &str| (name == "TANDEM_SERVE_DATABASE").then(|| "postgres://tandem:a@db/tandem".to_string());
        let config = Config::read(Some((Path::new("tandem.toml"), text)), of, []).unwrap();
        assert!(config.has_bucket() && config.has_tls() && config.tokens && config.without.is_empty());
        let manifest = include_str!("../../../../deploy/kubernetes/deployment.yaml");
        let stops = format!("terminationGracePeriodSeconds: {}", config.drain_seconds + 30);
        assert!(manifest.contains(&stops), "{stops}");
        for file in
            [config.witness_key, config.blobs_credentials, config.tls_certificate, config.tls_key].into_iter().flatten()
        {
            let folder = format!("mountPath: {}", file.parent().unwrap().display());
            assert!(manifest.contains(&folder), "{folder}");
        }
        let port = format!("containerPort: {}", config.listen.port());
        assert!(manifest.contains(&port) && manifest.contains("name: TANDEM_SERVE_DATABASE"));
    }

    /// What is not set is as AWS's tools have it, for a bucket alone.
    #[test]
    fn a_bucket_is_found_as_other_tools_find_it() {
        let variables =
            [("AWS_ENDPOINT_URL", "https://a"), ("AWS_ENDPOINT_URL_S3", "https://b"), ("AWS_DEFAULT_REGION", "c")];
        let read = |file: &str| {
            let text = format!("data = 'd'\ndatabase = 'postgres://b/c'\n{file}");
            let of =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
            let config = Config::read(Some((Path::new("tandem.toml"), &text)), of, []).unwrap();
            [config.blobs_endpoint, config.blobs_region]
        };
        let of = |endpoint: &str, region: &str| [Some(endpoint.to_string()), Some(region.to_string())];
        assert_eq!(read("blobs = 's3://abc/d'"), of("https://b", "c"));
        assert_eq!(read("blobs = 's3://abc'\nblobs_endpoint = 'http://e'\nblobs_region = 'f'"), of("http://e", "f"));
        assert_eq!(read("blobs = '/abc'"), [None, None]);
    }

    #[test]
    fn passwords_are_not_printed() {
        let seen = |url: &str| {
            let file = format!("data = 'd'\nblobs = '/b'\ndatabase = '{url}'");
            let config = Config::read(Some((Path::new("tandem.toml"), &file)), |_| None, []).unwrap();
            assert_eq!((config.database.as_deref(), config.blobs.as_deref()), (Some(url), Some("/b")));
            config.to_toml()
        };
        for url in ["postgres://tandem:s3cr@t@db/x", "postgres://tandem:s3cr%40t@db/x"] {
            let text = seen(url);
            assert!(text.contains("\"postgres://tandem@db/x\"") && !text.contains("s3cr"), "{text}");
        }
        assert!(seen("postgres://db/x").contains("\"postgres://db/x\""));
    }
}
