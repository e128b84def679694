//! A Unix socket beside the port.

use crate::support::Service;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tandem_service::client::{CallError, Client, Content, Method};

fn at(path: &Path) -> Client {
    Client::new(&format!("unix:{}", path.display())).unwrap()
}

/// A folder, and in it where a socket is to be.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tandem.sock");
    (folder, path)
}

#[test]
fn what_the_port_does_the_socket_does() {
    let (_folder, path) = place();
    let mut service =
        Service::start(&format!("workers = ['cpu']\ninterfaces = ['grpc']\nsocket = '{}'", path.display()));
    let client = at(&path);
    let witness = service.at("small.wtns");
    let job = client.call(Method::POST, "/v1/jobs?key=small", &[], Content::File(&witness)).unwrap();
    let id = job["id"].as_str().unwrap();
    assert_eq!(client.get(&format!("/v1/jobs/{id}?wait=20")).unwrap()["state"], "done");
    service.verify(&service.verifier(), id);
    // The other way round.
    let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(client.get(&format!("/v1/jobs/{id}?wait=20")).unwrap()["state"], "done");
    // HTTP/2: the service answers settings with its own.
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[3], 4);

    // A killed service leaves it behind, and the next one has it.
    service.kill();
    assert!(path.exists());
    let away = client.get("/v1/jobs").unwrap_err();
    assert!(matches!(&away, CallError::Unreachable(why) if why.contains("tandem.sock")), "{away}");
    service.restart();
    assert!(client.get("/v1/keys").is_ok());
    service.stop();
    assert!(!path.exists());
}

/// Tokens are wanted here too; TLS is not, as nobody is on the way.
#[test]
fn tokens_are_wanted_of_the_sockets_owner() {
    let (_folder, path) = place();
    let service = Service::start(&format!("workers = ['cpu']\ntokens = true\nsocket = '{}'", path.display()));
    let refused: Result<Value, CallError> = at(&path).get("/v1/keys");
    assert!(matches!(refused, Err(CallError::Refused { status: 401, .. })), "{refused:?}");
    drop(service);
}

#[test]
fn two_services_have_no_socket_together() {
    let (_folder, path) = place();
    let _first = Service::start(&format!("workers = ['cpu']\nsocket = '{}'", path.display()));
    let folder = tempfile::tempdir().unwrap();
    let second = Service::refuses_node(&format!("workers = ['cpu']\nsocket = '{}'", path.display()));
    assert!(second.contains("another service answers there"), "{second}");
    let nowhere = folder.path().join("none/sock");
    let second = Service::refuses_node(&format!("workers = ['cpu']\nsocket = '{}'", nowhere.display()));
    assert!(second.contains("cannot make a folder beside it"), "{second}");
    assert!(at(&path).get("/v1/keys").is_ok());
}
