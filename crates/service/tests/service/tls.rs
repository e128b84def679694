//! A service with a certificate: who reaches it, and what is wrong with files.

use crate::support::{grpc, wait_for, Service};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tandem_service::client::{Access, CallError, Client, Content, Method};

/// An authority, and files of what it signs.
struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // With the name of what it signs it would be taken for that.
        params.distinguished_name.push(DnType::CommonName, "an authority");
        let own = params.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("ca.pem"), own.pem()).unwrap();
        Authority { folder, issuer: Issuer::new(params, key) }
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Files of a certificate for a name or an address, and of its key.
    fn sign(&self, name: &str, is_client: bool) -> [PathBuf; 2] {
        self.sign_until(name, is_client, 4096)
    }

    /// [`Authority::sign`] with the year in which the certificate ends.
    fn sign_until(&self, name: &str, is_client: bool, year: i32) -> [PathBuf; 2] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_string()]).unwrap();
        let purpose = if is_client { ExtendedKeyUsagePurpose::ClientAuth } else { ExtendedKeyUsagePurpose::ServerAuth };
        params.extended_key_usages = vec![purpose];
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = ["pem", "key"].map(|end| self.folder.path().join(format!("{name}.{is_client}.{end}")));
        std::fs::write(&files[0], certificate.pem()).unwrap();
        std::fs::write(&files[1], key.serialize_pem()).unwrap();
        files
    }
}

fn settings([certificate, key]: &[PathBuf; 2]) -> String {
    format!(
        "workers = ['cpu']\nheader_seconds = 1\ntls_certificate = '{}'\ntls_key = '{}'",
        certificate.display(),
        key.display()
    )
}

fn access(authority: Option<&Path>, own: Option<[PathBuf; 2]>) -> Access {
    let own = own.map(|[certificate, key]| (certificate, key));
    Access { token: None, authority: authority.map(Path::to_path_buf), own }
}

fn call(service: &Service, host: &str, access: &Access) -> Result<serde_json::Value, CallError> {
    let port = service.address().rsplit(':').next().unwrap().to_string();
    Client::with(&format!("https://{host}:{port}"), access).unwrap().get("/health")
}

#[test]
fn a_proof_over_tls_from_a_service_that_is_trusted() {
    let (authority, other) = (Authority::new(), Authority::new());
    let service = Service::start(&settings(&authority.sign("127.0.0.1", false)));
    let trusting = access(Some(&authority.ca()), None);
    let client = Client::with(&format!("https://{}", service.address()), &trusting).unwrap();
    let witness = service.at("small.wtns");
    let job = client.call(Method::POST, "/v1/jobs?key=small", &[], Content::File(&witness)).unwrap();
    let path = format!("/v1/jobs/{}?wait=30", job["id"].as_str().unwrap());
    assert_eq!(client.get(&path).unwrap()["state"], "done");
    // An authority that is not trusted, that of the system, and a name that is not in the certificate.
    for (host, authority) in [("127.0.0.1", Some(other.ca())), ("127.0.0.1", None), ("localhost", Some(authority.ca()))]
    {
        match call(&service, host, &access(authority.as_deref(), None)) {
            Err(CallError::Unreachable(why)) => assert!(why.contains("certificate") && why.contains("--ca"), "{why}"),
            other => panic!("{host}: {other:?}"),
        }
    }
    // Without TLS there is no answer of HTTP.
    let reply = service.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", Duration::from_secs(5));
    assert!(!reply.contains("HTTP"), "{reply}");
}

/// gRPC by ALPN, with the same certificates; HTTP/1 over the same port, and HTTP/2 for who takes that.
#[test]
fn grpc_over_tls_is_for_callers_that_are_trusted() {
    let (authority, other) = (Authority::new(), Authority::new());
    let own = settings(&authority.sign("127.0.0.1", false));
    let settings = format!("{own}\ninterfaces = ['grpc']\ntls_clients = '{}'", authority.ca().display());
    let service = Service::start(&settings);
    let [certificate, key] = authority.sign("caller", true);
    let known = access(Some(&authority.ca()), Some([certificate.clone(), key.clone()]));
    assert_eq!(call(&service, "127.0.0.1", &known).unwrap()["status"], "ok");
    wait_for("the worker", || {
        let client = Client::with(&format!("https://{}", service.address()), &known).unwrap();
        client.get("/ready").is_ok()
    });
    let health = |ca: &Path, own: &[&Path]| {
        let text = |path: &Path| path.display().to_string();
        let files = [&[ca], own].concat().into_iter().map(text).collect::<Vec<_>>();
        let arguments = [vec!["health".to_string(), service.address()], files].concat();
        grpc::python(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    if health(&authority.ca(), &[&certificate, &key]).is_none() {
        return;
    }
    wait_for("health", || health(&authority.ca(), &[&certificate, &key]).is_some_and(|answer| answer == "SERVING\n"));
    // Without a certificate, with one that nobody signed here, and a service that is not trusted.
    let [foreign, foreign_key] = other.sign("caller", true);
    for (ca, own) in [
        (authority.ca(), vec![]),
        (authority.ca(), vec![foreign.as_path(), foreign_key.as_path()]),
        (other.ca(), vec![certificate.as_path(), key.as_path()]),
    ] {
        assert_eq!(health(&ca, &own).unwrap(), "UNAVAILABLE\n");
    }
}

#[test]
fn handshakes_that_do_not_come_are_ended_and_hold_nothing_up() {
    let authority = Authority::new();
    let service = Service::start(&format!("{}\nconnections = 8", settings(&authority.sign("127.0.0.1", false))));
    let begun = Instant::now();
    // Nothing at all, and the begin of a hello.
    let stuck = |number: usize| {
        let mut stream = TcpStream::connect(service.address()).unwrap();
        stream.write_all([&b""[..], &[22, 3, 1, 1, 0, 1]][number % 2]).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    };
    let mut streams: Vec<_> = (0..7).map(stuck).collect();
    // The eighth is still served.
    let trusting = access(Some(&authority.ca()), None);
    assert_eq!(call(&service, "127.0.0.1", &trusting).unwrap()["status"], "ok");
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    // A handshake is a connection: behind eight of them one waits until the first are over.
    streams.push(stuck(7));
    assert_eq!(call(&service, "127.0.0.1", &trusting).unwrap()["status"], "ok");
    assert!(begun.elapsed() > Duration::from_millis(900), "{:?}", begun.elapsed());
    for stream in &mut streams {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // All eight are free again.
    let clients = || (0..8).filter(|_| call(&service, "127.0.0.1", &trusting).is_ok()).count();
    wait_for("the connections", || clients() == 8);
    let metrics = |kind: &str| {
        let port = service.address().rsplit(':').next().unwrap().to_string();
        let client = Client::with(&format!("https://127.0.0.1:{port}"), &trusting).unwrap();
        client.text("/metrics").unwrap().contains(&format!("tandem_tls_refused_total{{kind=\"{kind}\"}}"))
    };
    assert!(metrics("too_slow") && !metrics("failed"));
    service.raw(b"GET / HTTP/1.1\r\n\r\n", Duration::from_secs(5));
    wait_for("the count", || metrics("failed"));
}

/// A certificate that has expired is told at the start. A new one is taken while the service runs, and one that is no good is not.
#[test]
fn a_certificate_is_looked_at_and_read_again() {
    let (old, new) = (Authority::new(), Authority::new());
    let expired = old.sign_until("127.0.0.2", false, 2001);
    let refused = Service::refuses(&settings(&expired).replace("workers = ['cpu']", ""));
    assert!(refused.contains("127.0.0.2.false.pem") && refused.contains("has expired"), "{refused}");
    let files = old.sign("127.0.0.1", false);
    let service = Service::start(&settings(&files));
    let as_of = |authority: &Authority| call(&service, "127.0.0.1", &access(Some(&authority.ca()), None)).is_ok();
    assert!(as_of(&old) && !as_of(&new));
    let reload = |from: &[PathBuf; 2], event: &str| {
        for (from, to) in from.iter().zip(&files) {
            std::fs::copy(from, to).unwrap();
        }
        std::fs::write(service.at("reload"), "").unwrap();
        let log = || std::fs::read_to_string(service.at("log")).unwrap();
        wait_for(event, || log().contains(&format!("event={event}")));
    };
    reload(&expired, "reload_failed");
    assert!(as_of(&old));
    reload(&new.sign("127.0.0.1", false), "reloaded");
    assert!(!as_of(&old) && as_of(&new));
}

#[test]
fn callers_show_certificates_where_that_is_wanted() {
    let (authority, clients, other) = (Authority::new(), Authority::new(), Authority::new());
    let wanted =
        format!("{}\ntls_clients = '{}'", settings(&authority.sign("127.0.0.1", false)), clients.ca().display());
    let service = Service::start(&wanted);
    let as_one = |own: Option<[PathBuf; 2]>| call(&service, "127.0.0.1", &access(Some(&authority.ca()), own));
    assert_eq!(as_one(Some(clients.sign("wallet", true))).unwrap()["status"], "ok");
    // None, another authority's, and one that is for servers.
    for own in [None, Some(other.sign("wallet", true)), Some(clients.sign("wallet", false))] {
        assert!(matches!(as_one(own.clone()), Err(CallError::Unreachable(_))), "{own:?}");
    }
}

#[test]
fn files_that_are_wrong_are_named_at_the_start() {
    let authority = Authority::new();
    let good = authority.sign("127.0.0.1", false);
    let of_other = authority.sign("other", false);
    let junk = authority.folder.path().join("junk");
    std::fs::write(&junk, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    let large = authority.folder.path().join("large");
    std::fs::write(&large, vec![b'x'; 2 << 20]).unwrap();
    let none = authority.folder.path().join("none");
    let [certificate, key] = &good;
    for (files, file, what) in [
        ([none.clone(), key.clone()], &none, "cannot read"),
        ([certificate.clone(), none.clone()], &none, "cannot read"),
        ([key.clone(), key.clone()], key, "expected certificates in PEM"),
        ([certificate.clone(), certificate.clone()], certificate, "expected an unencrypted private key"),
        ([certificate.clone(), of_other[1].clone()], &of_other[1], "not the key of the first certificate"),
        ([junk.clone(), key.clone()], &junk, "cannot be used"),
        ([large.clone(), key.clone()], &large, "at most"),
    ] {
        let error = Service::refuses(&settings(&files).replace("workers = ['cpu']\n", ""));
        assert!(error.contains(file.to_str().unwrap()) && error.contains(what) && !error.contains('\n'), "{error}");
        assert!(!error.contains("PRIVATE"), "{error}");
    }
    let clients = format!("{}\ntls_clients = '{}'", settings(&good).replace("workers = ['cpu']\n", ""), junk.display());
    let error = Service::refuses(&clients);
    assert!(error.contains(junk.to_str().unwrap()) && error.contains("authority"), "{error}");
    // The same of a client's.
    let error = |access: &Access| Client::with("https://127.0.0.1:1", access).err().unwrap();
    assert!(error(&access(Some(&none), None)).contains("none: cannot read"));
    assert!(error(&access(None, Some([certificate.clone(), junk]))).contains("junk: expected an unencrypted"));
}
