//! What people who watch see: it agrees with the jobs, and has nothing of a witness.

use crate::support::{refused, wait_for, Service};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

fn overview(service: &Service) -> Value {
    service.client().get("/v1/overview").unwrap()
}

fn sum(seen: &Value, name: &str) -> u64 {
    seen["steps"].as_array().unwrap().iter().map(|step| step[name].as_u64().unwrap()).sum()
}

#[test]
fn the_overview_is_that_of_the_jobs() {
    let service = Service::start("workers = ['cpu']");
    let seen = overview(&service);
    assert_eq!((seen["attempts"].as_array().unwrap().len(), sum(&seen, "done")), (0, 0));
    assert_eq!((&seen["latency"]["p50_ms"], seen["steps"].as_array().unwrap().len()), (&Value::Null, 60));
    // The first one fails for its witness, three are done, and one waits behind one that runs.
    let bad = std::fs::read(service.at("small.wtns")).unwrap();
    std::fs::write(service.at("bad.wtns"), &bad[..bad.len() - 1]).unwrap();
    let submit =
        |path: &str, witness: &str| service.submit_to(path, None, witness).unwrap()["id"].as_str().unwrap().to_string();
    let failed = submit("/v1/jobs?key=small", "bad.wtns");
    assert_eq!(service.ended(&failed)["state"], "failed");
    let done: Vec<String> = (0..3).map(|_| submit("/v1/jobs?key=small", "small.wtns")).collect();
    let ended: Vec<Value> = done.iter().map(|id| service.ended(id)).collect();
    service.fault("pause,key,1");
    let running = submit("/v1/jobs?key=small&priority=7", "small.wtns");
    wait_for("the worker", || service.at("paused").exists());
    wait_for("a look", || overview(&service)["steps"].as_array().unwrap().iter().any(|step| step["running"] == 1));
    let seen = overview(&service);
    assert_eq!((sum(&seen, "done"), sum(&seen, "failed")), (3, 1));
    assert_eq!((seen["ended"]["done"].as_u64(), seen["ended"]["failed"].as_u64()), (Some(3), Some(1)));
    let queue = serde_json::json!([{"priority": 7, "pending": 0, "running": 1, "oldest_ms": 0}]);
    assert_eq!(seen["queue"], queue);
    // Percentiles by the jobs themselves.
    let number = |job: &Value, name: &str| job[name].as_i64().unwrap();
    let mut times: Vec<i64> = ended.iter().map(|job| number(job, "ended_ms") - number(job, "created_ms")).collect();
    times.sort_unstable();
    let latency = serde_json::json!({"jobs": 3, "p50_ms": times[1], "p90_ms": times[2], "p99_ms": times[2]});
    assert_eq!(seen["latency"], latency);
    let attempts = seen["attempts"].as_array().unwrap();
    let codes: Vec<(&str, Option<&str>)> =
        attempts.iter().map(|of| (of["job"].as_str().unwrap(), of["code"].as_str())).collect();
    let expected: Vec<(&str, Option<&str>)> = std::iter::once((failed.as_str(), Some("bad_input")))
        .chain(done.iter().map(|id| (id.as_str(), Some("done"))))
        .chain([(running.as_str(), None)])
        .collect();
    assert_eq!(codes, expected);
    assert!(attempts[1]["stages"]["proof"].as_f64().unwrap() > 0.0 && attempts[4]["stages"] == Value::Null);
    assert_eq!(seen["keys"][0]["on"], serde_json::json!(["0:cpu"]));
    // Nothing of a witness, of a public value or of a proof: all that there is has these names and no others.
    let mut names = BTreeSet::new();
    collect(&seen, &mut names);
    let known = "version time_ms started_ms draining queue priority pending running oldest_ms ended done failed cancelled \
                 workers name ready device jobs job key stage key_bytes restarts trouble keys curve domain bytes on step_ms \
                 steps at_ms p50_ms p90_ms latency p99_ms attempts worker begun_ms ended_ms code stages read upload turn proof";
    let known: BTreeSet<String> = known.split_whitespace().map(String::from).collect();
    assert!(names.is_subset(&known), "{:?}", names.difference(&known).collect::<Vec<_>>());
    let described: Value = serde_json::from_str(tandem_service::OPENAPI).unwrap();
    agrees(&seen, &described["components"]["schemas"]["Overview"], "overview");
    let result = service.client().get(&format!("/v1/jobs/{}/result", done[0])).unwrap();
    for value in result["public"].as_array().unwrap().iter().chain(result["proof"]["pi_a"].as_array().unwrap()) {
        let value = value.as_str().unwrap();
        assert!(value.len() < 20 || !seen.to_string().contains(value), "{value}");
    }
}

/// Every name within a value.
fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(of) => of.iter().for_each(|(name, value)| {
            names.insert(name.clone());
            collect(value, names);
        }),
        Value::Array(of) => of.iter().for_each(|value| collect(value, names)),
        _ => {}
    }
}

/// Fails unless the value is of the schema, and has all of its names.
fn agrees(value: &Value, schema: &Value, place: &str) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = &schema["type"];
    let takes = |word: &str| kinds == word || kinds.as_array().is_some_and(|all| all.iter().any(|of| of == word));
    assert!(takes(kind) || kind == "integer" && takes("number"), "{place}: {value} is no {kinds}");
    match value {
        Value::Array(of) => of.iter().for_each(|value| agrees(value, &schema["items"], place)),
        Value::Object(of) => {
            let Some(known) = schema["properties"].as_object() else { return };
            assert_eq!(of.keys().collect::<BTreeSet<_>>(), known.keys().collect(), "{place}");
            of.iter().for_each(|(name, value)| agrees(value, &known[name], &format!("{place}.{name}")));
        }
        _ => {}
    }
}

#[test]
fn the_page_is_there_for_everybody_and_what_it_shows_is_not() {
    let service = Service::start("workers = ['cpu']\ntokens = true");
    let get = |path: &str, more: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n");
        service.raw(request.as_bytes(), Duration::from_secs(5))
    };
    let page = get("/", "");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("text/html; charset=utf-8"), "{page}");
    for word in ["default-src 'none'", "frame-ancestors 'none'", "nosniff", "no-store"] {
        assert!(page.split("\r\n\r\n").next().unwrap().contains(word), "{word}");
    }
    let nonce = page.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert_eq!(page.split("\r\n\r\n").nth(1).unwrap().matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    assert!(nonce.len() == 32 && !page.contains("NONCE"));
    assert!(get("/v1/overview", "").starts_with("HTTP/1.1 401 "));
    assert!(get("/", "Origin: https://evil.example\r\n").starts_with("HTTP/1.1 403 "));
    assert_eq!(refused(service.client().get("/v1/overview")), (401, "unauthorized".into()));
}
