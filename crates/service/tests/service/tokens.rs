//! Who may call a service that wants tokens, and what those see who may.

use crate::support::{refused, wait_for, Service};
use serde_json::Value;
use std::time::Duration;
use tandem_service::client::{Access, CallError, Client, Content, Method};
use tandem_service::store::{NewToken, Role, Store};

/// Beside the service, as `tandem tokens` does.
fn store(service: &Service) -> Store {
    Store::open(&service.at("data/jobs.db"), true).unwrap()
}

fn add(service: &Service, role: Role, [jobs, rate]: [Option<u64>; 2]) -> String {
    store(service).add_token(&NewToken { name: "a test".into(), role, jobs, rate }, 1).unwrap()
}

fn client(service: &Service, token: &str) -> Client {
    Client::with(&service.address(), &Access { token: Some(token.into()), ..Access::default() }).unwrap()
}

fn submit(service: &Service, client: &Client, id: Option<&str>) -> Result<String, CallError> {
    let headers: Vec<_> = id.iter().map(|id| ("idempotency-key", *id)).collect();
    let body = Content::File(&service.folder.path().join("small.wtns"));
    let job = client.call(Method::POST, "/v1/jobs?key=small", &headers, body)?;
    Ok(job["id"].as_str().unwrap().into())
}

fn jobs(client: &Client) -> Vec<String> {
    let jobs = client.get("/v1/jobs").unwrap();
    jobs["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().into()).collect()
}

/// Every route, and the least role that it takes: none, or a place in [`Role::ALL`] and more.
const ROUTES: [(&str, &str, usize); 35] = [
    ("GET", "/", 0),
    ("GET", "/v1/overview", 1),
    ("GET", "/health", 0),
    ("GET", "/ready", 0),
    ("GET", "/version", 0),
    ("GET", "/openapi.json", 0),
    ("GET", "/metrics", 1),
    ("GET", "/v1/workers", 1),
    ("GET", "/v1/nodes", 1),
    ("GET", "/v1/jobs", 1),
    ("GET", "/v1/jobs/{id}", 1),
    ("GET", "/v1/jobs/{id}/result", 1),
    ("GET", "/v1/keys", 1),
    ("GET", "/v1/keys/{name}", 1),
    ("POST", "/v1/jobs", 2),
    ("POST", "/v1/jobs/{id}/cancel", 2),
    ("POST", "/v1/keys", 3),
    ("PUT", "/v1/keys/{name}", 3),
    ("DELETE", "/v1/keys/{name}", 3),
    ("POST", "/v1/keys/{name}/preload", 3),
    ("POST", "/v1/keys/{name}/evict", 3),
    ("PUT", "/v1/keys/{name}/program", 3),
    ("POST", "/v1/batches", 2),
    ("GET", "/v1/batches/{id}", 1),
    ("GET", "/v1/batches/{id}/results", 1),
    ("POST", "/v1/batches/{id}/cancel", 2),
    ("GET", "/v1/trace", 1),
    ("POST", "/input/{circuit}", 2),
    ("GET", "/status", 2),
    ("POST", "/cancel", 2),
    ("POST", "/start", 2),
    ("POST", "/stop", 2),
    ("GET", "/api/v1/status", 0),
    ("POST", "/api/v1/proof/generate", 2),
    ("POST", "/api/v1/proof/verify", 1),
];

#[test]
fn each_route_takes_its_role_and_no_less() {
    let service = Service::start("workers = ['cpu']\ntokens = true\ninterfaces = ['rapidsnark', 'iden3']");
    // All that the description has, with what it says of them.
    let described: Value = serde_json::from_str(tandem_service::OPENAPI).unwrap();
    let methods = |paths: &Value| paths.as_object().unwrap().keys().filter(|name| *name != "parameters").count();
    assert_eq!(described["paths"].as_object().unwrap().values().map(methods).sum::<usize>(), ROUTES.len());
    let role = |need: usize| Role::ALL.map(Role::name)[need - 1];
    let callers = Role::ALL.map(|role| client(&service, &add(&service, role, [None, None])));
    for (method, path, need) in ROUTES {
        let said = &described["paths"][path][method.to_lowercase()]["security"][0]["token"][0];
        assert_eq!(said.as_str(), (need > 0).then(|| role(need)), "{method} {path}");
        let call = |client: &Client| {
            let path =
                ["{id}", "{name}", "{circuit}"].iter().fold(path.to_string(), |path, part| path.replace(part, "none"));
            client.call(method.parse().unwrap(), &path, &[], Content::Empty)
        };
        let status = |outcome: Result<Value, CallError>| match outcome {
            Err(CallError::Refused { status, .. }) => status,
            Err(other) => panic!("{other}"),
            Ok(_) => 200,
        };
        assert_eq!(status(call(&service.client())) == 401, need > 0, "{method} {path}");
        for (has, caller) in (1..).zip(&callers) {
            let status = status(call(caller));
            assert_eq!(status == 403, has < need, "{method} {path} as {}: {status}", role(has));
            assert_ne!(status, 401, "{method} {path}");
        }
    }
}

#[test]
fn a_token_is_right_as_a_whole_until_it_is_revoked() {
    let service = Service::start("workers = ['cpu']\ntokens = true");
    let token = add(&service, Role::Admin, [None, None]);
    let get = |token: &str| client(&service, token).get("/v1/keys");
    assert!(get(&token).is_ok() && get(&format!(" {token} ")).is_ok());
    let parts: Vec<&str> = token.split('_').collect();
    assert_eq!((parts.len(), parts[0], parts[1].len(), parts[2].len()), (3, "tandem", 16, 64));
    let other = add(&service, Role::Admin, [None, None]);
    let secret_of_other = format!("tandem_{}_{}", parts[1], other.split('_').nth(2).unwrap());
    let flipped = |at: usize| {
        let mut bytes = token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        String::from_utf8(bytes).unwrap()
    };
    let (cut, last) = (&token[..token.len() - 1], token.len() - 1);
    let wrong = [flipped(0), flipped(8), flipped(24), flipped(last), cut.into(), format!("{token}0"), secret_of_other];
    let none = ["", "x", "tandem_", "tandem__", "tandem_' OR 1=1 --_x"].map(String::from);
    for wrong in wrong.into_iter().chain(none) {
        assert_eq!(refused(get(&wrong)), (401, "unauthorized".into()), "{wrong}");
    }
    // Other ways of showing it are none, and a challenge says which one is.
    for header in [format!("Basic {token}"), token.clone(), format!("bearer{token}")] {
        let request = format!("GET /v1/keys HTTP/1.0\r\nHost: localhost\r\nAuthorization: {header}\r\n\r\n");
        let reply = service.raw(request.as_bytes(), Duration::from_secs(5));
        assert!(reply.starts_with("HTTP/1.0 401 ") && reply.contains("www-authenticate: Bearer\r\n"), "{reply}");
    }
    let store = store(&service);
    assert!(!store.revoke_token("none", 5).unwrap() && store.revoke_token(parts[1], 5).unwrap());
    assert_eq!(refused(get(&token)), (401, "unauthorized".into()));
    assert!(get(&other).is_ok());
    // The secret is in no file, and nothing of it in the log and the metrics.
    let mut files = vec![service.at("log")];
    files.extend(std::fs::read_dir(service.at("data")).unwrap().map(|entry| entry.unwrap().path()));
    for file in files.iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(file).unwrap();
        for secret in [parts[2], other.split('_').nth(2).unwrap()] {
            let is_there = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!is_there, "{}", file.display());
        }
    }
    let log = std::fs::read_to_string(service.at("log")).unwrap();
    assert!(
        !log.contains(parts[1]) && !client(&service, &other).get("/metrics").unwrap().to_string().contains(parts[1])
    );
}

#[test]
fn a_job_is_there_for_its_token_and_for_admins() {
    let service = Service::start("workers = ['cpu']\nin_hand = 1\ntokens = true");
    let roles = [Role::Submit, Role::Submit, Role::Admin, Role::Read];
    let [a, b, admin, reader] = roles.map(|role| client(&service, &add(&service, role, [None, None])));
    service.fault("pause,turn,1");
    // The same id of two callers is two jobs, and each has it back as it was.
    let (of_a, of_b) = (submit(&service, &a, Some("one")).unwrap(), submit(&service, &b, Some("one")).unwrap());
    assert_ne!(of_a, of_b);
    assert_eq!(submit(&service, &a, Some("one")).unwrap(), of_a);
    assert_eq!(a.get(&format!("/v1/jobs/{of_a}")).unwrap()["request"], "one");
    wait_for("the worker", || service.at("paused").exists());
    for path in [format!("/v1/jobs/{of_a}"), format!("/v1/jobs/{of_a}/result"), format!("/v1/jobs/{of_a}?wait=1")] {
        for other in [&b, &reader] {
            assert_eq!(refused(other.get(&path)), (404, "no_job".into()), "{path}");
        }
    }
    let cancel =
        |client: &Client, id: &str| client.call(Method::POST, &format!("/v1/jobs/{id}/cancel"), &[], Content::Empty);
    assert_eq!(refused(cancel(&b, &of_a)), (404, "no_job".into()));
    assert_eq!((jobs(&a), jobs(&b), jobs(&reader)), (vec![of_a.clone()], vec![of_b.clone()], vec![]));
    assert_eq!(jobs(&admin).len(), 2);
    // Who may see the workers sees the names of jobs of its own.
    let names = |client: &Client| client.get("/v1/workers").unwrap()["workers"][0]["jobs"].to_string();
    wait_for("its stage", || names(&reader).contains("turn"));
    let overview = |client: &Client| client.get("/v1/overview").unwrap();
    for (caller, sees) in [(&a, true), (&admin, true), (&b, false), (&reader, false)] {
        let seen = overview(caller);
        assert_eq!(seen.to_string().contains(&of_a), sees, "{seen}");
        assert!(seen["workers"][0]["jobs"].as_array().unwrap().iter().any(|job| job["key"] == "small"), "{seen}");
    }
    assert!(names(&a).contains(&of_a) && names(&admin).contains(&of_a));
    assert!(!names(&b).contains(&of_a) && !names(&reader).contains(&of_a));
    cancel(&b, &of_b).unwrap();
    std::fs::write(service.at("go"), "").unwrap();
    assert_eq!(a.get(&format!("/v1/jobs/{of_a}?wait=30")).unwrap()["state"], "done");
    for client in [&a, &admin] {
        assert!(client.get(&format!("/v1/jobs/{of_a}/result")).is_ok());
    }
}

#[test]
fn a_token_has_as_many_jobs_as_it_may() {
    let service = Service::start("workers = ['cpu']\nin_hand = 1\ntokens = true");
    service.fault("pause,key,1");
    let few_token = add(&service, Role::Submit, [Some(2), None]);
    let few = client(&service, &few_token);
    let slow = add(&service, Role::Submit, [None, Some(3)]);
    let first = submit(&service, &few, Some("first")).unwrap();
    submit(&service, &few, None).unwrap();
    assert_eq!(refused(submit(&service, &few, None).map(Value::from)), (429, "token_jobs".into()));
    // Also where an id could have stood for one, and without one before anything of a witness is taken in.
    assert_eq!(refused(submit(&service, &few, Some("third")).map(Value::from)), (429, "token_jobs".into()));
    let head = |token: &str| {
        let head = format!("POST /v1/jobs?key=small HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
        service.raw(format!("{head}Content-Length: 900\r\n\r\n").as_bytes(), Duration::from_secs(5))
    };
    let reply = head(&few_token);
    assert!(reply.starts_with("HTTP/1.1 429 ") && reply.contains("token_jobs"), "{reply}");
    // What was accepted is still the same job.
    assert_eq!(submit(&service, &few, Some("first")).unwrap(), first);
    assert_eq!(service.witnesses().len(), 2);
    few.call(Method::POST, &format!("/v1/jobs/{first}/cancel"), &[], Content::Empty).unwrap();
    submit(&service, &few, None).unwrap();
    // As often as it may in a minute, also where the job is there already; looking costs nothing.
    for _ in 0..3 {
        submit(&service, &client(&service, &slow), Some("again")).unwrap();
    }
    assert_eq!(
        refused(submit(&service, &client(&service, &slow), Some("again")).map(Value::from)),
        (429, "token_rate".into())
    );
    assert_eq!(jobs(&client(&service, &slow)).len(), 1);
    // Before anything of a witness is taken in, too, and with the time to wait.
    let reply = head(&slow);
    let wait = reply.lines().find_map(|line| line.strip_prefix("retry-after: ")?.parse::<u64>().ok());
    assert!(reply.starts_with("HTTP/1.1 429 ") && wait.is_some_and(|wait| (10..=21).contains(&wait)), "{reply}");
    assert!(submit(&service, &few, None).is_err() && service.witnesses().len() == 3);
    // What is submitted while a token is revoked is not accepted.
    assert!(store(&service).token_room("none").is_err());
}

#[test]
fn what_other_machines_reach_is_called_by_its_address_unless_tokens_are_wanted() {
    let status = |service: &Service, host: &str| {
        let request = format!("GET /v1/keys HTTP/1.0\r\nHost: {host}\r\n\r\n");
        service.raw(request.as_bytes(), Duration::from_secs(5)).get(9..12).unwrap_or_default().to_string()
    };
    let open = Service::start("workers = ['cpu']\nwithout = ['tls', 'tokens']\nlisten = '0.0.0.0:0'");
    assert_eq!(
        ["10.1.2.3:80", "localhost", "[fe80::1]", "evil.example:80"].map(|host| status(&open, host)),
        ["200", "200", "200", "403"]
    );
    let log = std::fs::read_to_string(open.at("log")).unwrap();
    assert!(log.contains("event=unprotected") && log.contains("removes keys") && log.contains("reads tokens"), "{log}");
    let closed = Service::start("workers = ['cpu']\ntokens = true\nwithout = ['tls']\nlisten = '0.0.0.0:0'");
    assert_eq!(["10.1.2.3", "prover.example"].map(|host| status(&closed, host)), ["401", "401"]);
    let origin = b"GET /health HTTP/1.0\r\nHost: prover.example\r\nOrigin: https://evil.example\r\n\r\n";
    assert!(closed.raw(origin, Duration::from_secs(5)).starts_with("HTTP/1.0 403 "));
}
