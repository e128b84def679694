//! Where callers come in: a port, and beside it a Unix socket, over which a witness takes half as long as over loopback.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use tokio::net::TcpStream;

/// A Unix socket that only its owner and root reach. It is removed when this goes.
pub(crate) struct Socket {
    path: PathBuf,
    /// Device and number of the file, so that no other one is removed.
    file: (u64, u64),
    listener: UnixListener,
}

impl Socket {
    /// Listens at a path. A socket that a killed service has left there is replaced.
    ///
    /// # Errors
    /// One sentence: a service answers there, something else is there, the folder is missing or may not be written, the path is too long.
    pub(crate) fn open(path: &Path) -> Result<Socket, String> {
        let failed = |what: &str, e: &io::Error| format!("socket: {}: {what}: {e}", path.display());
        // The kernel's limit: nobody could connect by a longer one.
        SocketAddr::from_pathname(path).map_err(|e| failed("cannot be called", &e))?;
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed("cannot look", &error)),
            Ok(found) if !found.file_type().is_socket() => {
                return Err(format!("socket: {}: a file is there that is no socket; say another path", path.display()));
            }
            Ok(_) => match UnixStream::connect(path) {
                // Nobody listens any more.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Ok(_) => {
                    return Err(format!(
                        "socket: {}: another service answers there; stop it, or say another path",
                        path.display()
                    ));
                }
                Err(error) => return Err(failed("cannot tell whether another service has it", &error)),
            },
        }
        // It is made in a folder that nobody else enters, so that nobody can connect before it has its mode.
        let folder = path.parent().unwrap_or(Path::new("")).join(format!(".{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|e| failed("cannot make a folder beside it", &e))?;
        let made = folder.join("s");
        let listener = UnixListener::bind(&made).and_then(|listener| {
            fs::set_permissions(&made, fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            let about = fs::symlink_metadata(&made)?;
            fs::rename(&made, path)?;
            Ok((listener, (about.dev(), about.ino())))
        });
        let _ = fs::remove_dir_all(&folder);
        let (listener, file) = listener.map_err(|e| failed("cannot listen", &e))?;
        Ok(Socket { path: path.into(), file, listener })
    }

    /// Accepts callers from now on.
    pub(super) fn accepting(&self) -> io::Result<Listener> {
        Ok(Listener::Unix(tokio::net::UnixListener::from_std(self.listener.try_clone()?)?))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.file);
        if is_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What accepts callers.
pub(super) enum Listener {
    Port(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

/// A caller's connection.
pub(super) enum Accepted {
    Port(TcpStream),
    Unix(tokio::net::UnixStream),
}

impl Listener {
    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Port(listener) => {
                let (stream, _) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                Ok(Accepted::Port(stream))
            }
            Listener::Unix(listener) => Ok(Accepted::Unix(listener.accept().await?.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    fn problem(path: &Path) -> String {
        Socket::open(path).err().unwrap_or_default()
    }

    #[test]
    fn only_the_owner_reaches_a_socket_and_no_file_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let socket = Socket::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        let names = || fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names(), 1, "nothing lies beside it");
        assert!(problem(&path).contains("another service answers there"), "{}", problem(&path));
        assert!(UnixStream::connect(&path).is_ok(), "what was refused has changed nothing");
        drop(socket);
        assert_eq!(names(), 0);

        // One that a killed service has left.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists() && UnixStream::connect(&path).is_err());
        let socket = Socket::open(&path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        // Another file has its name now: it stays.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(socket);
        assert!(problem(&path).contains("no socket"), "{}", problem(&path));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");

        // Made anew again and again, nobody else could have connected at any time: neither by its folder before it has its name, nor after.
        let (inside, again) = (folder.path().join(format!(".{}", std::process::id())), folder.path().join("again"));
        let (modes, is_over) = (Mutex::new(BTreeSet::new()), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    for path in [&inside, &again] {
                        let seen = fs::symlink_metadata(path).map(|found| (path == &inside, found.mode() & 0o777));
                        modes.lock().unwrap().extend(seen);
                    }
                }
            });
            let begun = Instant::now();
            let seen = || modes.lock().unwrap().len();
            while begun.elapsed() < Duration::from_millis(300) || seen() < 2 && begun.elapsed().as_secs() < 20 {
                drop(Socket::open(&again));
            }
            is_over.store(true, Ordering::SeqCst);
        });
        assert_eq!(Vec::from_iter(modes.into_inner().unwrap()), [(false, 0o600), (true, 0o700)]);

        let missing = folder.path().join("none/socket");
        assert!(problem(&missing).contains("none/socket: cannot"), "{}", problem(&missing));
        let long = folder.path().join("x".repeat(200));
        assert!(problem(&long).contains("cannot be called"), "{}", problem(&long));
        assert_eq!(names(), 1);
    }
}
