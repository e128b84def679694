//! Which addresses there are.

use crate::config::Interface;
use hyper::Method;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Page,
    Overview,
    Trace,
    RapidsnarkInput,
    RapidsnarkStatus,
    RapidsnarkCancel,
    RapidsnarkStart,
    RapidsnarkStop,
    Iden3Status,
    Iden3Generate,
    Iden3Verify,
    Health,
    Ready,
    Version,
    Openapi,
    Metrics,
    Workers,
    Nodes,
    Submit,
    SubmitBatch,
    Batch,
    BatchResults,
    BatchCancel,
    Jobs,
    Job,
    Result,
    Cancel,
    Keys,
    Key,
    Register,
    Upload,
    UploadProgram,
    Remove,
    Preload,
    Evict,
}

/// Method, address and route. `{}` stands for one part of an address.
const ROUTES: [(Method, &str, Route); 35] = [
    (Method::GET, "/", Route::Page),
    (Method::GET, "/v1/overview", Route::Overview),
    (Method::GET, "/v1/trace", Route::Trace),
    (Method::POST, "/input/{circuit}", Route::RapidsnarkInput),
    (Method::GET, "/status", Route::RapidsnarkStatus),
    (Method::POST, "/cancel", Route::RapidsnarkCancel),
    (Method::POST, "/start", Route::RapidsnarkStart),
    (Method::POST, "/stop", Route::RapidsnarkStop),
    (Method::GET, "/api/v1/status", Route::Iden3Status),
    (Method::POST, "/api/v1/proof/generate", Route::Iden3Generate),
    (Method::POST, "/api/v1/proof/verify", Route::Iden3Verify),
    (Method::GET, "/health", Route::Health),
    (Method::GET, "/ready", Route::Ready),
    (Method::GET, "/version", Route::Version),
    (Method::GET, "/openapi.json", Route::Openapi),
    (Method::GET, "/metrics", Route::Metrics),
    (Method::GET, "/v1/workers", Route::Workers),
    (Method::GET, "/v1/nodes", Route::Nodes),
    (Method::POST, "/v1/jobs", Route::Submit),
    (Method::GET, "/v1/jobs", Route::Jobs),
    (Method::GET, "/v1/jobs/{id}", Route::Job),
    (Method::GET, "/v1/jobs/{id}/result", Route::Result),
    (Method::POST, "/v1/jobs/{id}/cancel", Route::Cancel),
    (Method::POST, "/v1/batches", Route::SubmitBatch),
    (Method::GET, "/v1/batches/{id}", Route::Batch),
    (Method::GET, "/v1/batches/{id}/results", Route::BatchResults),
    (Method::POST, "/v1/batches/{id}/cancel", Route::BatchCancel),
    (Method::GET, "/v1/keys", Route::Keys),
    (Method::POST, "/v1/keys", Route::Register),
    (Method::GET, "/v1/keys/{name}", Route::Key),
    (Method::PUT, "/v1/keys/{name}", Route::Upload),
    (Method::PUT, "/v1/keys/{name}/program", Route::UploadProgram),
    (Method::DELETE, "/v1/keys/{name}", Route::Remove),
    (Method::POST, "/v1/keys/{name}/preload", Route::Preload),
    (Method::POST, "/v1/keys/{name}/evict", Route::Evict),
];

/// What is at an address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// A route, and the part of the address that is the caller's.
    Route(Route, &'a str),
    /// Nothing by this method, but by these.
    OtherMethods(String),
    Nothing,
}

/// The interface of another prover that a route belongs to.
fn interface(route: Route) -> Option<Interface> {
    match route {
        Route::RapidsnarkInput
        | Route::RapidsnarkStatus
        | Route::RapidsnarkCancel
        | Route::RapidsnarkStart
        | Route::RapidsnarkStop => Some(Interface::Rapidsnark),
        Route::Iden3Status | Route::Iden3Generate | Route::Iden3Verify => Some(Interface::Iden3),
        _ => None,
    }
}

/// What is at an address, where these `interfaces` of other provers are there.
pub(crate) fn find<'a>(interfaces: &[Interface], method: &Method, path: &'a str) -> Found<'a> {
    let mut others = Vec::new();
    let is_there = |route: Route| interface(route).is_none_or(|interface| interfaces.contains(&interface));
    for (known, pattern, route) in ROUTES.iter().filter(|(.., route)| is_there(*route)) {
        if let Some(part) = matched(pattern, path) {
            if known == method {
                return Found::Route(*route, part);
            }
            others.push(known.as_str());
        }
    }
    match others.is_empty() {
        true => Found::Nothing,
        false => Found::OtherMethods(others.join(", ")),
    }
}

/// The address of a route, for counters.
pub(crate) fn pattern(route: Route) -> &'static str {
    ROUTES.iter().find(|(.., known)| *known == route).map_or("", |(_, pattern, _)| pattern)
}

/// The caller's part of the path, empty where the pattern has none.
fn matched<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let (mut found, mut parts) = ("", path.split('/'));
    for expected in pattern.split('/') {
        let part = parts.next()?;
        if expected.starts_with('{') && !part.is_empty() {
            found = part;
        } else if expected != part {
            return None;
        }
    }
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_description_has_the_routes_and_no_others() {
        let description: serde_json::Value = serde_json::from_str(crate::OPENAPI).unwrap();
        let mut described = BTreeSet::new();
        for (path, methods) in description["paths"].as_object().unwrap() {
            for (method, what) in methods.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters") {
                assert!(what["summary"].is_string() && what["responses"].is_object(), "{method} {path}");
                described.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
        let routes: BTreeSet<String> = ROUTES.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
        assert_eq!(described, routes);
    }

    #[test]
    fn addresses_are_found() {
        assert_eq!(find(&[], &Method::GET, "/v1/jobs/abc/result"), Found::Route(Route::Result, "abc"));
        assert_eq!(find(&[], &Method::PUT, "/v1/keys/a.b"), Found::Route(Route::Upload, "a.b"));
        assert_eq!(find(&[], &Method::GET, "/v1/jobs"), Found::Route(Route::Jobs, ""));
        assert_eq!(find(&[], &Method::DELETE, "/v1/jobs"), Found::OtherMethods("POST, GET".into()));
        assert_eq!(find(&[], &Method::GET, "/"), Found::Route(Route::Page, ""));
        assert_eq!(find(&[Interface::Iden3], &Method::GET, "/status"), Found::Nothing);
        let found = find(&[Interface::Rapidsnark], &Method::POST, "/input/a");
        assert_eq!(found, Found::Route(Route::RapidsnarkInput, "a"));
        for path in ["//", "", "/v1/jobs/", "/v1/jobs//result", "/v1/jobs/a/b/c", "/v1/keys/a/evict/"] {
            assert_eq!(find(&[], &Method::GET, path), Found::Nothing, "{path}");
        }
    }
}
