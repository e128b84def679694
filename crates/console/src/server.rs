//! Which service a command calls, and as whom.

use crate::failure::{Failure, Outcome};
use clap::Args;
use std::path::PathBuf;

/// Bytes of a file with a token at most.
const TOKEN_MAX: u64 = 4096;

/// The variable of a token. There is no option: other users see the arguments of a program.
const TOKEN: &str = "TANDEM_TOKEN";

/// A service.
#[derive(Args)]
pub struct Server {
    /// Address of the service, or unix:PATH for its Unix socket
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "http://127.0.0.1:8555",
        env = "TANDEM_SERVER",
        hide_env_values = true
    )]
    pub server: String,
    /// File with the token to show to the service; without it TANDEM_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File of the authorities to trust with https, in PEM [default: those of the system]
    #[arg(long, value_name = "FILE", env = "TANDEM_SERVER_CA", hide_env_values = true)]
    pub ca: Option<PathBuf>,
    /// File of a certificate of yours, in PEM, for a service that wants one
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_certificate: Option<PathBuf>,
    /// File of its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "client_certificate")]
    client_key: Option<PathBuf>,
}

impl Server {
    /// The caller's own certificate and its key.
    pub fn own(&self) -> Option<(PathBuf, PathBuf)> {
        self.client_certificate.clone().zip(self.client_key.clone())
    }

    /// The token to show, from the file or else the environment.
    pub fn token(&self) -> Outcome<Option<String>> {
        let Some(path) = &self.token_file else {
            return Ok(std::env::var(TOKEN).ok().filter(|token| !token.is_empty()));
        };
        let text = crate::files::read(path, TOKEN_MAX)?;
        let text = std::str::from_utf8(&text).map(str::trim).ok().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| Failure::file(path, "expected a token, as tandem tokens add prints it"))?;
        Ok(Some(text.into()))
    }
}
