//! The status page: one file that needs nothing else, and asks for [`super::overview`] again and again.

use super::{text, Refusal, Reply};
use crate::blobs::random_name;
use hyper::header::{HeaderName, HeaderValue, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use hyper::StatusCode;

const PAGE: &str = include_str!("page.html");

/// What stands in the page for the number by which its script and its style are known to be ours.
const NONCE: &str = "NONCE";

/// The page. Whatever comes into it runs no script of its own, loads nothing, and can be put into no frame.
pub(super) fn page() -> Result<Reply, Refusal> {
    let nonce = random_name().map_err(|e| super::body::storage(&e))?;
    let mut reply = text(StatusCode::OK, "text/html; charset=utf-8", PAGE.replace(NONCE, &nonce));
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers: [(HeaderName, &str); 3] =
        [(CONTENT_SECURITY_POLICY, &policy), (X_CONTENT_TYPE_OPTIONS, "nosniff"), (REFERRER_POLICY, "no-referrer")];
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            reply.headers_mut().insert(name, value);
        }
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes from callers and files is text to the page, and nothing is asked of another host.
    #[test]
    fn the_page_takes_no_markup_and_nothing_from_elsewhere() {
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"] {
            assert!(!PAGE.contains(word), "{word}");
        }
        let hosts: Vec<_> = PAGE.match_indices("http").map(|(at, _)| &PAGE[at..(at + 27).min(PAGE.len())]).collect();
        assert_eq!(hosts, ["http://www.w3.org/2000/svg\""]);
        assert!(!PAGE.contains("style=\"") && !PAGE.contains("url(") && !PAGE.contains("@import"));
    }

    #[test]
    fn each_page_has_a_number_of_its_own() {
        let policies: Vec<_> = (0..2).map(|_| page().unwrap().headers()[CONTENT_SECURITY_POLICY].clone()).collect();
        assert_ne!(policies[0], policies[1]);
        assert_eq!(PAGE.matches(NONCE).count(), 2);
    }
}
