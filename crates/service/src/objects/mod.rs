//! A bucket of an S3-compatible store. Signing and the store's words are rusty-s3's, HTTP is hyper's, as everywhere here.
//!
//! An object appears whole or not at all: a small one by one request, a larger one in parts that are put together by the last request.
//! Each body has its MD5 among what is signed, so that the store refuses one that was changed on the way. Whoever reads an object gets a
//! URL that is good for this object and for a while, and no credentials.

mod chores;
mod credentials;
mod read;
#[cfg(test)]
mod tests;
mod upload;
mod wire;

pub(crate) use credentials::SECRET_VARIABLES;
pub(crate) use read::Object;
pub(crate) use upload::{Upload, OBJECT_MAX};

use crate::config::Config;
use base64::prelude::{Engine as _, BASE64_STANDARD};
use chores::Chores;
use credentials::Signer;
use hyper::body::Bytes;
use hyper::{Method, StatusCode};
use md5::{Digest, Md5};
use read::{again, may_pass};
use rusty_s3::actions::ListObjectsV2;
use rusty_s3::{Credentials, S3Action, UrlStyle};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use wire::{Asked, Link};

/// How long the signature of a request of this process's own holds.
const OWN: Duration = Duration::from_secs(300);

/// The longest time that a URL holds.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// What addresses of buckets begin with.
pub(crate) const SCHEME: &str = "s3://";

/// A name that is checked when the bucket is opened, and the most bytes of it.
const MARK_MAX: u64 = 4096;

/// A bucket, and the part of it that is an installation's.
pub(crate) struct Bucket {
    bucket: rusty_s3::Bucket,
    /// What the names of objects begin with: empty, or with `/` at its end.
    prefix: String,
    signer: Signer,
    link: Arc<Link>,
    authority: Option<PathBuf>,
    /// How long the store may be silent.
    stall: Duration,
    /// How long a worker may take to begin to read what it was given.
    reads_within: Duration,
    /// As people know the store, behind the name of an object.
    store: String,
    chores: Chores,
}

/// An object of a list.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) changed: SystemTime,
}

/// Where a bucket's address leads: the bucket and the prefix.
pub(crate) fn place(address: &str) -> Result<(&str, String), String> {
    let wrong =
        |what: &str| format!("blobs: '{address}': {what}; expected s3://bucket/prefix, or the path of a folder");
    let rest = address.strip_prefix(SCHEME).ok_or_else(|| wrong("no bucket"))?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
    if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(plain) || bucket.starts_with(['-', '.']) {
        return Err(wrong("a bucket has 3 to 63 small letters, digits, '-' and '.'"));
    }
    let prefix = prefix.trim_end_matches('/');
    let is_name = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    match prefix.is_empty() || (prefix.len() <= 500 && prefix.split('/').all(is_name)) {
        true if prefix.is_empty() => Ok((bucket, String::new())),
        true => Ok((bucket, format!("{prefix}/"))),
        false => Err(wrong("a prefix has letters, digits, '-', '_', '.', and '/' between its parts")),
    }
}

/// What a refusal of the store says. [`ErrorKind::NotFound`] is a missing object alone, not a missing bucket.
fn refused(status: StatusCode, body: &[u8]) -> io::Error {
    let text = String::from_utf8_lossy(body);
    let word = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>"))
            .map(|(word, _)| word.chars().filter(|c| !c.is_control()).take(200).collect::<String>())
    };
    let (code, message) = (word("Code").unwrap_or_default(), word("Message").unwrap_or_default());
    let said = format!("{} {code}: {message}", status.as_u16());
    let may_not = || {
        let what =
            "see that the credentials hold, may list, read, write and delete here, and that this machine's clock is right";
        io::Error::new(ErrorKind::PermissionDenied, format!("{said}; {what}"))
    };
    match (status, code.as_str()) {
        // Some stores say that with another status.
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) | (_, "InvalidAccessKeyId") => may_not(),
        (StatusCode::NOT_FOUND, "NoSuchBucket") => {
            io::Error::other(format!("{said}; make the bucket, or name another in blobs"))
        }
        (StatusCode::NOT_FOUND, "NoSuchKey" | "") => {
            io::Error::new(ErrorKind::NotFound, format!("{said}; somebody has removed it"))
        }
        (StatusCode::PRECONDITION_FAILED, _) => {
            io::Error::new(ErrorKind::InvalidData, format!("{said}; it was changed while it was read"))
        }
        _ => io::Error::other(said),
    }
}

/// What a request of this process's own is.
struct Own<'a> {
    /// What is done, for people, and to which name.
    what: &'a str,
    name: &'a str,
    method: Method,
    body: Bytes,
}

impl Bucket {
    /// The bucket of the settings, for the process that writes to it.
    ///
    /// # Errors
    /// One sentence: a setting is wrong, there are no credentials. Whether the store answers is seen at the first request.
    pub(crate) fn open(config: &Config, address: &str) -> Result<Arc<Bucket>, String> {
        let (name, prefix) = place(address)?;
        let region = config.blobs_region.clone().unwrap_or_else(|| "us-east-1".into());
        let is_named = config.blobs_endpoint.is_some();
        let endpoint = config.blobs_endpoint.clone().unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let url = endpoint.parse().map_err(|e| format!("blobs_endpoint: '{endpoint}': {e}; expected https://host"))?;
        // The host of a bucket with dots has no certificate, and a store of one's own has one name.
        let style = if is_named || name.contains('.') { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let bucket = rusty_s3::Bucket::new(url, style, name.to_string(), region);
        let bucket = bucket.map_err(|e| format!("blobs_endpoint: '{endpoint}': {e}; expected https://host"))?;
        let signer = Signer::new(config.blobs_credentials.as_deref(), |name| std::env::var(name).ok())?;
        let authority = config.blobs_ca.clone();
        let link = wire::link(bucket.base_url().as_str(), authority.as_deref())
            .map_err(|e| format!("blobs_endpoint: '{endpoint}': {e}"))?;
        let seconds = u64::from(config.proof_seconds).saturating_mul(config.in_hand as u64).saturating_add(3600);
        let open = |chores| Bucket {
            bucket,
            prefix,
            signer,
            link,
            authority,
            stall: Duration::from_secs(config.stall_seconds.into()),
            reads_within: Duration::from_secs(seconds).min(LONGEST),
            store: format!("at {endpoint}"),
            chores,
        };
        Chores::start(open).map_err(|e| format!("no thread can be started: {e}"))
    }

    /// An object as people know it.
    pub(crate) fn shown(&self, name: &str) -> String {
        format!("{SCHEME}{}/{}{name} {}", self.bucket.name(), self.prefix, self.store)
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Asks the store, again where that may help, each time with a new signature. `sign` is given the hash of the body.
    fn ask(&self, own: &Own<'_>, sign: impl Fn(&Credentials, &str) -> String) -> io::Result<(Option<String>, Vec<u8>)> {
        let begun = Instant::now();
        let md5 = BASE64_STANDARD.encode(Md5::digest(&own.body));
        let has_body = !own.body.is_empty() || own.method == Method::PUT;
        for tries in 1.. {
            let target = sign(&self.signer.credentials(), &md5);
            let headers = if has_body { vec![("content-md5", md5.clone())] } else { Vec::new() };
            let (method, body, stall) = (own.method.clone(), own.body.clone(), self.stall);
            let asked = Asked { method, target: wire::target(&target), headers, body, stall, wanted: &|| true };
            let (error, passes) = match self.link.exchange(&asked) {
                Ok((status, headers, body)) if status.is_success() => {
                    let etag = headers.get("etag").and_then(|etag| etag.to_str().ok()).map(String::from);
                    return Ok((etag, body));
                }
                // The body was changed on the way.
                Ok((status, _, body)) if body.windows(9).any(|word| word == b"BadDigest") => {
                    (refused(status, &body), true)
                }
                Ok((status, _, body)) => (refused(status, &body), may_pass(status)),
                Err(error) => (error, true),
            };
            if !passes || !again(tries, begun, self.stall, &|| true) {
                let shown = self.shown(own.name);
                return Err(io::Error::new(error.kind(), format!("{shown}: cannot {}: {error}", own.what)));
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    fn own<'a>(what: &'a str, name: &'a str, method: Method) -> Own<'a> {
        Own { what, name, method, body: Bytes::new() }
    }

    /// Writes a small object.
    ///
    /// # Errors
    /// It was not written, or that is not known.
    pub(crate) fn put(&self, name: &str, body: Bytes) -> io::Result<()> {
        let key = self.key(name);
        let own = Own { body, ..Bucket::own("write", name, Method::PUT) };
        self.ask(&own, |of, md5| {
            let mut put = self.bucket.put_object(Some(of), &key);
            put.headers_mut().insert("content-md5", md5);
            put.sign(OWN).into()
        })
        .map(drop)
    }

    /// The content of a small object, if there is one.
    ///
    /// # Errors
    /// It is too large, or cannot be read.
    pub(crate) fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let object = self.object(name);
        let content = match object.open(&|| true) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            content => content?,
        };
        if content.size() > MARK_MAX {
            return Err(io::Error::other(format!(
                "{}: {} bytes; expected {MARK_MAX} at most",
                self.shown(name),
                content.size()
            )));
        }
        let mut whole = Vec::new();
        io::Read::read_to_end(&mut { content }, &mut whole)?;
        Ok(Some(whole))
    }

    /// Removes an object now. That it is gone already is no error.
    fn delete(&self, name: &str) -> io::Result<()> {
        let key = self.key(name);
        let own = Bucket::own("remove", name, Method::DELETE);
        match self.ask(&own, |of, _| self.bucket.delete_object(Some(of), &key).sign(OWN).into()) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Removes an object soon, also where the store is away for a while.
    pub(crate) fn remove(&self, name: &str) {
        self.chores.remove(name.into());
    }

    /// Whether objects are still to be removed, and the store is there.
    pub(crate) fn is_busy(&self) -> bool {
        self.chores.is_busy()
    }

    /// All objects whose names begin so.
    ///
    /// # Errors
    /// The store refuses, or is away.
    pub(crate) fn list(&self, begin: &str) -> io::Result<Vec<Listed>> {
        let (prefix, mut token, mut all) = (self.key(begin), None::<String>, Vec::new());
        loop {
            let own = Bucket::own("list", begin, Method::GET);
            let (_, body) = self.ask(&own, |of, _| {
                let mut list = self.bucket.list_objects_v2(Some(of));
                list.with_prefix(prefix.as_str());
                if let Some(token) = &token {
                    list.with_continuation_token(token.as_str());
                }
                list.sign(OWN).into()
            })?;
            let wrong = |e: &dyn std::fmt::Display| {
                io::Error::other(format!("{}: the store lists wrongly: {e}", self.shown(begin)))
            };
            let text = std::str::from_utf8(&body).map_err(|e| wrong(&e))?;
            let page = ListObjectsV2::parse_response(text).map_err(|e| wrong(&e))?;
            for of in page.contents {
                let Some(name) = of.key.strip_prefix(&self.prefix) else { continue };
                let changed = of.last_modified.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
                // Of an age that is not known it is young: nothing is removed that may be needed.
                let changed = changed.map_or_else(SystemTime::now, SystemTime::from);
                all.push(Listed { name: name.into(), bytes: of.size.unwrap_or(0), changed });
            }
            match page.next_continuation_token {
                Some(next) if token.as_ref() != Some(&next) => token = Some(next),
                Some(_) => return Err(wrong(&"the same page again")),
                None => return Ok(all),
            }
        }
    }

    /// What reads an object needs to know.
    pub(crate) fn object(&self, name: &str) -> Object {
        let key = self.key(name);
        let url = self.bucket.get_object(Some(&self.signer.credentials()), &key).sign(self.reads_within);
        let stall_seconds = u32::try_from(self.stall.as_secs()).unwrap_or(u32::MAX);
        Object { url: url.into(), name: self.shown(name), authority: self.authority.clone(), stall_seconds }
    }
}

#[cfg(test)]
mod words {
    use super::*;

    #[test]
    fn addresses_are_a_bucket_and_a_prefix() {
        let of = |address| place(address).map(|(bucket, prefix)| (bucket.to_string(), prefix));
        let is = |bucket: &str, prefix: &str| Ok((bucket.to_string(), prefix.to_string()));
        assert_eq!(of("s3://abc"), is("abc", ""));
        assert_eq!(of("s3://abc/"), is("abc", ""));
        assert_eq!(of("s3://a-b.c/d/e_F.9/"), is("a-b.c", "d/e_F.9/"));
        for wrong in [
            "s3://",
            "s3://ab",
            "s3://ABC",
            "s3://a b",
            "s3://abc/../x",
            "s3://abc/./x",
            "s3://abc//x",
            "s3://abc/x?y",
            "s3://abc/x#",
            "s3://abc@d",
            "s3:/abc",
        ] {
            let why = of(wrong).unwrap_err();
            assert!(why.contains(wrong) && why.contains("s3://bucket/prefix"), "{why}");
        }
    }

    #[test]
    fn what_the_store_says_is_told_and_bounded() {
        let body =
            |code: &str| format!("<?xml?><Error><Code>{code}</Code><Message>why{}</Message></Error>", "y".repeat(900));
        let of = |status: u16, code: &str| refused(StatusCode::from_u16(status).unwrap(), body(code).as_bytes());
        assert_eq!(of(404, "NoSuchKey").kind(), ErrorKind::NotFound);
        assert_eq!([of(404, "NoSuchBucket").kind(), of(404, "NoSuchUpload").kind()], [ErrorKind::Other; 2]);
        assert_eq!(of(404, "InvalidAccessKeyId").kind(), ErrorKind::PermissionDenied);
        assert_eq!(of(412, "PreconditionFailed").kind(), ErrorKind::InvalidData);
        assert_eq!(of(403, "AccessDenied").kind(), ErrorKind::PermissionDenied);
        let text = of(503, "SlowDown").to_string();
        assert!(text.starts_with("503 SlowDown: why") && text.len() < 300, "{text}");
        assert_eq!(refused(StatusCode::NOT_FOUND, b"\xff\0").kind(), ErrorKind::NotFound);
        assert!(
            may_pass(StatusCode::SERVICE_UNAVAILABLE)
                && may_pass(StatusCode::TOO_MANY_REQUESTS)
                && !may_pass(StatusCode::FORBIDDEN)
        );
    }
}
