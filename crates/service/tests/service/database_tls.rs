//! TLS to a real PostgreSQL: whose certificate is taken, and that nothing goes without where it is wanted.

use crate::support::postgres::Postgres;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::path::{Path, PathBuf};
use tandem_service::store::Store;
use tandem_service::Config;

/// An authority, and files of what it signs.
struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let (folder, key) = (tempfile::tempdir().unwrap(), KeyPair::generate().unwrap());
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        std::fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Authority { folder, issuer: Issuer::new(params, key) }
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn sign(&self, name: &str, year: i32) -> [String; 2] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_string()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        [params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem()]
    }
}

/// Opens the database as a node does.
fn open(server: &Postgres, host: &str, words: &str, ca: Option<&Path>) -> Result<Store, String> {
    let ca = ca.map_or(String::new(), |ca| format!("database_ca = '{}'\n", ca.display()));
    let url = format!("postgres://postgres@{host}:{}/postgres{words}", server.port);
    let text = format!("data = '/nonexistent'\nblobs = '/nonexistent'\nnode = 'n'\ndatabase = '{url}'\n{ca}");
    tandem_service::open_store(&Config::read(Some((Path::new("tandem.toml"), &text)), |_| None, [])?)
}

/// Whether each connection of a node's is by TLS, as the server has it.
fn ways(server: &Postgres) -> Vec<String> {
    let sql =
        "SELECT ssl, version FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'tandem'";
    server.ask(sql).lines().map(String::from).collect()
}

#[test]
fn a_database_is_verified_before_anything_is_said() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (ca, other) = (authority.ca(), other.ca());
    let server = Postgres::with_tls(&authority.sign("127.0.0.1", 4096), "hostssl");
    for words in ["?sslmode=require", "?sslmode=verify-full", "?sslmode=verify-ca", "?sslmode=prefer", ""] {
        let store = open(&server, "127.0.0.1", words, Some(&ca)).unwrap();
        assert!(store.nodes().unwrap().is_empty());
        let ways = ways(&server);
        assert!(ways.len() >= 3 && ways.iter().all(|way| way == "t|TLSv1.3"), "{words}: {ways:?}");
    }
    let refused = |server: &Postgres, host, words, ca: Option<&Path>, expected: &[&str]| {
        let why = open(server, host, words, ca).map(|_| ()).unwrap_err();
        assert!(expected.iter().any(|part| why.contains(part)) && !why.contains('\n'), "{expected:?}: {why}");
        // Nothing is left that was let in after all.
        assert!(ways(server).is_empty());
    };
    for words in ["?sslmode=require", "?sslmode=verify-full", ""] {
        refused(&server, "127.0.0.1", words, Some(&other), &["UnknownIssuer", "BadSignature"]);
        refused(&server, "127.0.0.1", words, None, &["UnknownIssuer"]);
        // It is another's certificate.
        refused(&server, "localhost", words, Some(&ca), &["not valid for name"]);
    }
    // The server takes nothing without TLS, and says so.
    refused(&server, "127.0.0.1", "?sslmode=disable", Some(&ca), &["no encryption"]);
    refused(&server, "127.0.0.1", "?sslmode=maybe", Some(&ca), &["sslmode"]);
    drop(server);
    let server = Postgres::with_tls(&authority.sign("127.0.0.1", 2020), "hostssl");
    refused(&server, "127.0.0.1", "?sslmode=require", Some(&ca), &["xpired"]);
}

/// A server without TLS, or somebody on the way who says that it has none.
#[test]
fn nothing_goes_without_tls_where_it_is_wanted() {
    let server = Postgres::start();
    let ca = Authority::new();
    for words in ["?sslmode=require", "?sslmode=verify-full", "?sslmode=verify-ca"] {
        let why = open(&server, "127.0.0.1", words, Some(&ca.ca())).map(|_| ()).unwrap_err();
        assert!(why.contains("server does not support TLS"), "{why}");
        assert!(ways(&server).is_empty());
    }
    open(&server, "127.0.0.1", "?sslmode=disable", None).unwrap();
    let store = open(&server, "127.0.0.1", "", None).unwrap();
    assert!(!ways(&server).is_empty() && ways(&server).iter().all(|way| way.starts_with("f|")));
    drop(store);
}
