//! Who calls, and what that one may do.

use super::routes::Route;
use super::{blocking, Refusal};
use crate::config::Config;
use crate::core::Core;
use crate::store::{Job, Role};
use hyper::header::{AUTHORIZATION, HOST, ORIGIN};
use hyper::{HeaderMap, StatusCode};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// Who sent a request.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The id of the token; `None` where the service asks for none.
    pub(crate) token: Option<String>,
    role: Role,
}

impl Caller {
    /// Whether a job is there for this caller.
    pub(crate) fn sees(&self, job: &Job) -> bool {
        self.sees_token(job.token.as_deref())
    }

    /// Whether a job of this token is there for this caller.
    pub(crate) fn sees_token(&self, token: Option<&str>) -> bool {
        self.role == Role::Admin || self.token.is_some() && self.token.as_deref() == token
    }

    /// Whose jobs there are for this caller; `None`: all.
    pub(crate) fn only(&self) -> Option<&str> {
        self.token.as_deref().filter(|_| self.role != Role::Admin)
    }
}

/// What a caller must be for a route; nothing for what monitors and loaders of descriptions ask.
fn needed(route: Route) -> Option<Role> {
    match route {
        Route::Page | Route::Health | Route::Ready | Route::Version | Route::Openapi | Route::Iden3Status => None,
        Route::Overview
        | Route::Trace
        | Route::Iden3Verify
        | Route::Metrics
        | Route::Workers
        | Route::Nodes
        | Route::Keys
        | Route::Key
        | Route::Jobs
        | Route::Job
        | Route::Result
        | Route::Batch
        | Route::BatchResults => Some(Role::Read),
        Route::RapidsnarkInput
        | Route::RapidsnarkStatus
        | Route::RapidsnarkCancel
        | Route::RapidsnarkStart
        | Route::RapidsnarkStop
        | Route::Iden3Generate
        | Route::Submit
        | Route::Cancel
        | Route::SubmitBatch
        | Route::BatchCancel => Some(Role::Submit),
        Route::Register | Route::Upload | Route::UploadProgram | Route::Remove | Route::Preload | Route::Evict => {
            Some(Role::Admin)
        }
    }
}

/// Who calls, if that one may call this route.
pub(crate) async fn check(core: &Arc<Core>, route: Route, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let (true, Some(needed)) = (core.config.tokens, needed(route)) else {
        return Ok(Caller { token: None, role: Role::Admin });
    };
    let refused = |message: &str| Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
    let header = headers.get(AUTHORIZATION);
    let header = header.ok_or_else(|| refused("this service wants a token: Authorization: Bearer TOKEN"))?;
    let text =
        header.to_str().ok().and_then(|header| header.strip_prefix("Bearer ")).map(|text| text.trim().to_string());
    let text = text.ok_or_else(|| refused("expected Authorization: Bearer TOKEN"))?;
    let token = blocking(core, move |core| Ok(core.store.token(&text)?)).await?;
    let token = token.ok_or_else(|| refused("the token is unknown or was revoked"))?;
    if token.role < needed {
        let (has, needed) = (token.role.name(), needed.name());
        let message = format!("the token's role is {has}; this takes {needed}");
        return Err(Refusal::new(StatusCode::FORBIDDEN, "role", message));
    }
    // Also a request that stands for a job already, or is refused below: its body costs as much.
    if let (Some(rate), Route::Submit | Route::SubmitBatch | Route::RapidsnarkInput | Route::Iden3Generate) =
        (token.rate, route)
    {
        core.rates.take(&token.id, rate, Instant::now()).map_err(|wait| {
            let again = wait.as_secs() + 1;
            let message = format!("this token may submit {rate} times a minute; try again in {again} s");
            Refusal { again, ..Refusal::new(StatusCode::TOO_MANY_REQUESTS, "token_rate", message) }
        })?;
    }
    Ok(Caller { token: Some(token.id), role: token.role })
}

/// Refuses what a page in a browser sends, which reaches addresses that others do not: from another site, or by a name that was made to
/// point here. Names do not matter where a token is wanted, which a browser does not send by itself, nor with TLS, where the certificate
/// has the name.
pub(crate) fn check_page(config: &Config, headers: &HeaderMap) -> Result<(), Refusal> {
    let forbidden = |message: &str| Err(Refusal::new(StatusCode::FORBIDDEN, "forbidden", message));
    if headers.contains_key(ORIGIN) {
        return forbidden("pages of browsers may not call this service");
    }
    if config.tokens || config.has_tls() {
        return Ok(());
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    let is_here = |address: IpAddr| address.is_loopback() || !config.listen.ip().is_loopback();
    match name == "localhost" || name.parse().is_ok_and(is_here) {
        true => Ok(()),
        false => forbidden("the Host of the request is a name; call the service by its address, such as 127.0.0.1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn names_matter_where_nothing_else_tells_a_caller() {
        let hosts =
            ["127.0.0.1:80", "localhost", "[::1]:80", "10.1.2.3", "evil.example:80", "127.0.0.1.evil.example", ""];
        let taken = |config: &Config| {
            hosts.map(|host| {
                let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
                check_page(config, &headers).is_ok()
            })
        };
        let here = Config::default();
        assert_eq!(taken(&here), [true, true, true, false, false, false, false]);
        let there = Config { listen: "0.0.0.0:80".parse().unwrap(), ..Config::default() };
        assert_eq!(taken(&there), [true, true, true, true, false, false, false]);
        let (tls, none) = (Config { tls_certificate: Some("c".into()), ..there.clone() }, HeaderMap::new());
        for config in [tls, Config { tokens: true, ..there.clone() }] {
            assert_eq!(taken(&config), [true; 7]);
            assert!(check_page(&config, &none).is_ok() && check_page(&there, &none).is_err());
            // From a page of another site, whatever the name.
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static("https://prover.example"))]);
            assert!(check_page(&config, &headers).is_err());
        }
    }
}
