//! A Unix socket.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::sleep;

use super::exhausted;
use crate::target::ConnectError;

/// Between two attempts at a socket whose queue is full. The kernel tells nobody when there is room again.
const PAUSE: Duration = Duration::from_millis(1);

/// Connects to a socket.
pub(super) async fn open(path: &Path) -> Result<UnixStream, ConnectError> {
    loop {
        match UnixStream::connect(path).await {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(PAUSE).await,
            Err(error) => return Err(failure(path, &error)),
        }
    }
}

fn failure(path: &Path, error: &io::Error) -> ConnectError {
    if let Some(what) = exhausted(error) {
        return ConnectError::Exhausted(what);
    }
    let place = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => ConnectError::NotYet(format!("there is no socket `{place}`")),
        // What is no socket at all refuses as well.
        io::ErrorKind::ConnectionRefused if !is_socket(path) => {
            ConnectError::Failed(format!("`{place}` is not a socket"))
        }
        io::ErrorKind::ConnectionRefused => ConnectError::NotYet(format!("nothing listens on the socket `{place}`")),
        io::ErrorKind::PermissionDenied => ConnectError::Failed(format!(
            "this user may not connect to the socket `{place}`: let it write to the socket, and enter its folder"
        )),
        io::ErrorKind::InvalidInput => ConnectError::Failed(format!("`{place}` is too long for the path of a socket")),
        _ => ConnectError::Failed(format!("cannot connect to the socket `{place}`: {error}")),
    }
}

fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, accept, bind, listen, socket};
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let ConnectError::Failed(words) = failure(Path::new("/run/engine.sock"), &denied) else { panic!("waited for") };
        assert!(words.contains("may not connect to the socket `/run/engine.sock`: let it write"), "{words}");
        let full = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        assert!(matches!(failure(Path::new("x"), &full), ConnectError::Exhausted(what) if what.contains("ulimit")));
    }

    #[test]
    fn a_socket_whose_queue_is_full_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&listener, 0).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut queue = Vec::new();
            while let Ok(stream) = timeout(Duration::from_millis(200), open(&path)).await {
                queue.push(stream.unwrap());
            }
            assert!(!queue.is_empty());
            let room = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                let accepted = accept(&listener).unwrap();
                (listener, accepted)
            });
            timeout(Duration::from_secs(60), open(&path)).await.expect("no end").unwrap();
            drop(room.join());
        });
    }
}
