//! TLS of both sides. What is in a file is checked when it is read, and an error names the file.

use crate::config::{Config, Interface};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a file of certificates at most: a system's has a quarter of that.
const FILE_MAX: u64 = 1 << 20;

/// What both sides speak beneath.
const PROTOCOL: &[u8] = b"http/1.1";

/// What the service speaks, too, where gRPC is on.
pub(crate) const HTTP2: &[u8] = b"h2";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unread = |e: std::io::Error| format!("{}: cannot read: {e}", path.display());
    let mut bytes = Vec::new();
    File::open(path).map_err(unread)?.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(unread)?;
    match bytes.len() as u64 <= FILE_MAX {
        true => Ok(bytes),
        false => Err(format!("{}: expected at most {FILE_MAX} bytes", path.display())),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(&read(path)?).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|e| format!("{}: expected certificates in PEM: {e}", path.display()))?;
    match found.is_empty() {
        true => Err(format!("{}: expected certificates in PEM, there are none", path.display())),
        false => Ok(found),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    // What it has instead is not told.
    let wrong = |_| format!("{}: expected an unencrypted private key in PEM", path.display());
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(wrong)
}

/// The authorities of a file.
fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|e| format!("{}: no certificate of an authority: {e}", path.display()))?;
    }
    Ok(roots)
}

/// What the service speaks, if it has a certificate.
pub(crate) fn server(config: &Config) -> Result<Option<Arc<ServerConfig>>, String> {
    let (Some(certificate), Some(key)) = (&config.tls_certificate, &config.tls_key) else { return Ok(None) };
    let provider = provider();
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(|e| format!("no TLS: {e}"))?;
    let builder = match &config.tls_clients {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(authorities(path)?.into(), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|e| format!("{}: {e}", path.display()))?)
        }
    };
    let (chain, own) = (certificates(certificate)?, private_key(key)?);
    check_time(&chain).map_err(|e| format!("{}: {e}", certificate.display()))?;
    let mut server = builder.with_single_cert(chain, own).map_err(|e| match e {
        rustls::Error::InconsistentKeys(_) => {
            format!("{}: not the key of the first certificate of {}", key.display(), certificate.display())
        }
        other => format!("{}, {}: cannot be used: {other}", certificate.display(), key.display()),
    })?;
    server.alpn_protocols = vec![PROTOCOL.into()];
    if config.interfaces.contains(&Interface::Grpc) {
        server.alpn_protocols.insert(0, HTTP2.into());
    }
    Ok(Some(Arc::new(server)))
}

/// Fails where the first certificate is not valid now. Whether callers trust it is theirs to say.
fn check_time(chain: &[CertificateDer<'static>]) -> Result<(), String> {
    let (Some((first, others)), mut roots) = (chain.split_first(), RootCertStore::empty()) else { return Ok(()) };
    // The time is looked at before anything leads to an authority; some authority must be known all the same.
    if chain.last().is_none_or(|last| roots.add(last.clone()).is_err()) {
        return Ok(());
    }
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(roots.into(), provider()).build() else {
        return Ok(());
    };
    let Ok(name) = ServerName::try_from("localhost") else { return Ok(()) };
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    match verifier.verify_server_cert(first, others, &name, &[], UnixTime::now()) {
        Err(rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. })) => {
            Err("the certificate has expired; put a new one there".into())
        }
        Err(rustls::Error::InvalidCertificate(NotValidYet | NotValidYetContext { .. })) => {
            Err("the certificate is not valid yet; is this machine's clock right?".into())
        }
        _ => Ok(()),
    }
}

/// What a client speaks: it trusts the authorities of a file, or else those of the system, and shows a certificate if it has one.
pub(crate) fn client(authority: Option<&Path>, own: Option<(&Path, &Path)>) -> Result<Arc<ClientConfig>, String> {
    let roots = match authority {
        Some(path) => authorities(path)?,
        None => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        }
    };
    let provider = provider();
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone()).build();
    let verifier = verifier.map_err(|e| format!("no authority is known: {e}; name a file of certificates by --ca"))?;
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(|e| format!("no TLS: {e}"))?;
    let builder = builder.with_webpki_verifier(verifier);
    let mut client = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let cannot = |e| format!("{}, {}: cannot be used: {e}", certificate.display(), key.display());
            builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?).map_err(cannot)?
        }
    };
    client.alpn_protocols = vec![PROTOCOL.into()];
    Ok(Arc::new(client))
}

/// What is spoken to a database: with the authorities of a file, or else those of the system.
pub(crate) fn database(authority: Option<&Path>) -> Result<ClientConfig, String> {
    let mut client = ClientConfig::clone(&*client(authority, None)?);
    client.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(client)
}
