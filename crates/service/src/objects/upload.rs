//! An object on its way into a bucket. Of its content a part is in memory at a time.

use super::{Bucket, Own, OWN};
use hyper::body::Bytes;
use hyper::Method;
use rusty_s3::actions::{CompleteMultipartUploadResponse, CreateMultipartUpload};
use rusty_s3::S3Action;
use std::io::{self, Write};
use std::sync::Arc;

/// Bytes of a part, of which S3 takes 10,000: objects of 78 GiB.
const PART: usize = 8 << 20;

/// So large can an object be, unless its parts are to be larger.
pub(crate) const OBJECT_MAX: u64 = PART as u64 * 10_000;

/// An upload. Unless it is finished nobody sees anything of it, and its parts are removed.
pub(crate) struct Upload {
    bucket: Arc<Bucket>,
    name: String,
    piece: Vec<u8>,
    bytes: u64,
    /// What the store calls the upload, if it has parts, and these.
    parts: Option<(String, Vec<String>)>,
    is_over: bool,
}

impl Upload {
    pub(crate) fn new(bucket: &Arc<Bucket>, name: String) -> Upload {
        Upload { bucket: bucket.clone(), name, piece: Vec::new(), bytes: 0, parts: None, is_over: false }
    }

    fn own<'a>(&'a self, what: &'a str, method: Method, body: Bytes) -> Own<'a> {
        Own { body, ..Bucket::own(what, &self.name, method) }
    }

    fn wrong(&self, why: &dyn std::fmt::Display) -> io::Error {
        io::Error::other(format!("{}: cannot write: the store answers wrongly: {why}", self.bucket.shown(&self.name)))
    }

    /// Sends the piece as a part.
    fn send(&mut self) -> io::Result<()> {
        let (bucket, key) = (self.bucket.clone(), self.bucket.key(&self.name));
        if self.parts.is_none() {
            let own = self.own("write", Method::POST, Bytes::new());
            let (_, body) =
                bucket.ask(&own, |of, _| bucket.bucket.create_multipart_upload(Some(of), &key).sign(OWN).into())?;
            let text = String::from_utf8_lossy(&body);
            let made = CreateMultipartUpload::parse_response(&text).map_err(|e| self.wrong(&e))?;
            self.parts = Some((made.upload_id().into(), Vec::new()));
        }
        let body = Bytes::from(std::mem::take(&mut self.piece));
        let Some((upload, parts)) = &self.parts else { return Ok(()) };
        let number = u16::try_from(parts.len() + 1).ok().filter(|number| *number <= 10_000);
        let number = number
            .ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {OBJECT_MAX} bytes")))?;
        let own = self.own("write", Method::PUT, body);
        let (etag, _) = bucket.ask(&own, |of, md5| {
            let mut part = bucket.bucket.upload_part(Some(of), &key, number, upload);
            part.headers_mut().insert("content-md5", md5);
            part.sign(OWN).into()
        })?;
        let etag = etag.ok_or_else(|| self.wrong(&"a part without a tag"))?;
        if let Some((_, parts)) = &mut self.parts {
            parts.push(etag);
        }
        Ok(())
    }

    /// Has the object appear.
    ///
    /// # Errors
    /// It did not, or that is not known.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.parts.is_none() {
            let body = Bytes::from(std::mem::take(&mut self.piece));
            self.is_over = true;
            return self.bucket.put(&self.name, body);
        }
        if !self.piece.is_empty() {
            self.send()?;
        }
        let (bucket, key) = (self.bucket.clone(), self.bucket.key(&self.name));
        let Some((upload, parts)) = &self.parts else { return Ok(()) };
        let tags = || parts.iter().map(String::as_str);
        let all = bucket.bucket.complete_multipart_upload(None, &key, upload, tags());
        let own = self.own("write", Method::POST, Bytes::from(all.body()));
        let done = bucket.ask(&own, |of, md5| {
            let mut all = bucket.bucket.complete_multipart_upload(Some(of), &key, upload, tags());
            all.headers_mut().insert("content-md5", md5);
            all.sign(OWN).into()
        });
        let done = done.and_then(|(_, body)| {
            // It may be refused after it was answered.
            let text = String::from_utf8_lossy(&body);
            CompleteMultipartUploadResponse::parse(&text)
                .map(drop)
                .map_err(|_| self.wrong(&super::refused(hyper::StatusCode::OK, &body)))
        });
        // Where the answer was lost, the next one is that there is no such upload: the object tells.
        if done.is_ok() || self.is_there() {
            self.is_over = true;
            return Ok(());
        }
        done
    }

    /// Whether an object of this name and length is there: names are used once, or stand for a hash.
    fn is_there(&self) -> bool {
        let listed = self.bucket.list(&self.name).unwrap_or_default();
        listed.iter().any(|of| of.name == self.name && of.bytes == self.bytes)
    }
}

#[cfg(test)]
impl Upload {
    /// Bytes that it has room for now.
    pub(super) fn held(&self) -> usize {
        self.piece.capacity()
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() == PART {
            self.send()?;
        }
        let count = bytes.len().min(PART - self.piece.len());
        self.piece.extend_from_slice(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let (false, Some((upload, _))) = (self.is_over, self.parts.take()) {
            self.bucket.chores.abort(self.name.clone(), upload);
        }
    }
}

impl Bucket {
    /// Gives an upload up. That it is gone already is no error.
    pub(super) fn abort(&self, name: &str, upload: &str) -> io::Result<()> {
        let key = self.key(name);
        let own = Bucket::own("give up", name, Method::DELETE);
        match self.ask(&own, |of, _| self.bucket.abort_multipart_upload(Some(of), &key, upload).sign(OWN).into()) {
            Err(e) if !e.to_string().contains("NoSuchUpload") => Err(e),
            _ => Ok(()),
        }
    }
}
