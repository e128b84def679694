//! Who signs requests: from a file as AWS's tools have it, or from the environment. A file is read again for each request, so that
//! another one in its place needs no restart.

use rusty_s3::Credentials;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a file of credentials at most.
const FILE_MAX: u64 = 1 << 20;

/// The variables that hold credentials: a process that runs others' programs is started without them.
pub(crate) const SECRET_VARIABLES: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// Where credentials are from.
pub(super) struct Signer {
    file: Option<(PathBuf, String)>,
    last: Mutex<Arc<Credentials>>,
}

impl Signer {
    /// Those of a file, or else of the variables, or else of the file that AWS's tools read.
    ///
    /// # Errors
    /// One sentence: there are none.
    pub(super) fn new(file: Option<&Path>, environment: impl Fn(&str) -> Option<String>) -> Result<Signer, String> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        if let (None, Some(key), Some(secret)) = (file, set(SECRET_VARIABLES[0]), set(SECRET_VARIABLES[1])) {
            let of = credentials(key, secret, set(SECRET_VARIABLES[2]));
            return Ok(Signer { file: None, last: Mutex::new(Arc::new(of)) });
        }
        let usual = || set("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from).or_else(|| home(&set));
        let Some(file) = file.map(Path::to_path_buf).or_else(usual) else {
            return Err(
                "blobs: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or blobs_credentials".into()
            );
        };
        let profile = set("AWS_PROFILE").unwrap_or_else(|| "default".into());
        let last = Mutex::new(Arc::new(read(&file, &profile)?));
        Ok(Signer { file: Some((file, profile)), last })
    }

    /// Those that hold now. Where the file cannot be read, they are those that were read before.
    pub(super) fn credentials(&self) -> Arc<Credentials> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(now) = self.file.as_ref().and_then(|(file, profile)| read(file, profile).ok()) {
            *last = Arc::new(now);
        }
        last.clone()
    }
}

fn home(set: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let file = PathBuf::from(set("HOME")?).join(".aws/credentials");
    file.exists().then_some(file)
}

fn credentials(key: String, secret: String, token: Option<String>) -> Credentials {
    match token {
        Some(token) => Credentials::new_with_token(key, secret, token),
        None => Credentials::new(key, secret),
    }
}

/// The credentials of a profile. What a file has instead is not told: it may be a secret.
fn read(file: &Path, profile: &str) -> Result<Credentials, String> {
    let unread = |e: std::io::Error| format!("{}: cannot read credentials: {e}", file.display());
    let mut text = String::new();
    File::open(file).map_err(unread)?.take(FILE_MAX).read_to_string(&mut text).map_err(unread)?;
    let [key, secret, token] = values(&text, profile);
    match (key, secret) {
        (Some(key), Some(secret)) => Ok(credentials(key, secret, token)),
        _ => Err(format!("{}: expected aws_access_key_id and aws_secret_access_key below [{profile}]", file.display())),
    }
}

/// Key, secret and token of a profile.
fn values(text: &str, profile: &str) -> [Option<String>; 3] {
    let mut found = [const { None }; 3];
    let mut is_within = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_within = name.trim() == profile;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_within) {
            let names = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];
            if let Some(at) = names.iter().position(|known| name.trim().eq_ignore_ascii_case(known)) {
                found[at] = Some(value.trim().to_string()).filter(|value| !value.is_empty());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=B=+/\n\n[other]\n; old\n\
                        AWS_ACCESS_KEY_ID=C\naws_secret_access_key = D\naws_session_token = E\nregion = x\n[empty]\naws_access_key_id =\n";

    fn seen(of: &Credentials) -> (&str, &str, Option<&str>) {
        (of.key(), of.secret(), of.token())
    }

    #[test]
    fn files_and_variables_are_read_as_aws_tools_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        std::fs::write(&file, FILE).unwrap();
        let at = file.display().to_string();
        let of = |name: &str, more: &[(&str, &str)]| {
            let all: Vec<_> = [("AWS_SHARED_CREDENTIALS_FILE", at.as_str()), ("AWS_PROFILE", name)]
                .into_iter()
                .chain(more.iter().copied())
                .collect();
            Signer::new(None, |name| all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string()))
        };
        assert_eq!(seen(&of("", &[]).unwrap().credentials()), ("A", "B=+/", None));
        assert_eq!(seen(&of("other", &[]).unwrap().credentials()), ("C", "D", Some("E")));
        let both = [("AWS_ACCESS_KEY_ID", "F"), ("AWS_SECRET_ACCESS_KEY", "G")];
        assert_eq!(seen(&of("", &both).unwrap().credentials()), ("F", "G", None));
        for wrong in ["none", "empty"] {
            let why = of(wrong, &[]).err().unwrap();
            assert!(why.contains(&at) && why.contains(&format!("below [{wrong}]")), "{why}");
        }
        let none = Signer::new(None, |_| None).err().unwrap();
        assert!(none.contains("AWS_ACCESS_KEY_ID") && none.contains("blobs_credentials"), "{none}");
    }

    #[test]
    fn a_file_that_changes_is_read_again_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        std::fs::write(&file, FILE).unwrap();
        // The file that was named wins over the environment.
        let signer = Signer::new(Some(&file), |name| (name != "AWS_PROFILE").then(|| "other".into())).unwrap();
        assert_eq!(seen(&signer.credentials()), ("A", "B=+/", None));
        std::fs::write(&file, FILE.replace('A', "Z").to_lowercase()).unwrap();
        assert_eq!(signer.credentials().key(), "z");
        std::fs::write(&file, "").unwrap();
        assert_eq!(signer.credentials().key(), "z");
    }
}
