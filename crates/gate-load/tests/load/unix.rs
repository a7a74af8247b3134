//! Servers behind a Unix socket.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gate_model::{HttpVersion, Nanos, Reached};

use crate::bench::Bench;
use crate::certificates::*;
use crate::server::*;

/// A folder that is gone with the test, and a socket's path in it.
pub(crate) fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.sock");
    (folder, path)
}

fn bench(path: &Path, count: u32) -> Bench {
    let mut bench = Bench::at("http://localhost/v1", count);
    bench.socket = Some(path.to_owned());
    bench
}

/// Listens on a socket for a server.
pub(crate) fn listen(path: &Path, server: SocketAddr) {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (near, far) = (stream.unwrap(), TcpStream::connect(server).unwrap());
            thread::spawn(move || pass(&near, &far));
        }
    });
}

/// Passes bytes on both ways until both sides have closed.
fn pass(mut near: &UnixStream, mut far: &TcpStream) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut &*far, &mut &*near);
            let _ = near.shutdown(Shutdown::Write);
        });
        let _ = io::copy(&mut near, &mut far);
        let _ = far.shutdown(Shutdown::Write);
    });
}

#[test]
fn a_server_behind_a_socket_is_asked_as_any_other() {
    let (_folder, path) = place();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let script = well(|_, _| stream(&["a", "b"]));
    listen(
        &path,
        serve(move |seen| {
            noted.lock().unwrap().push(seen.clone());
            script(seen)
        }),
    );
    let report = bench(&path, 3).go();
    assert_ok(&report);
    let reached =
        Reached { addresses: vec![path.display().to_string()], proxy: None, http: HttpVersion::Http1, server: None };
    assert_eq!(report.run.end.unwrap().reached, Some(reached));
    assert!(asked.lock().unwrap().iter().all(|seen| seen.head.contains("host: localhost\r\n")));
    assert_eq!(asked.lock().unwrap().last().unwrap().line, "POST /v1/chat/completions HTTP/1.1");
}

#[test]
fn a_socket_that_is_not_there_yet_is_waited_for() {
    let (_folder, path) = place();
    let server = serve_measured(|_, _| stream(&["a"]));
    let later = path.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(600));
        listen(&later, server);
    });
    assert_ok(&bench(&path, 1).go());
    let (_folder, path) = place();
    let mut bench = bench(&path, 1);
    bench.spec.target.ready.within = Nanos::from_millis(400);
    assert_says(&refusal(bench), &[&format!("there is no socket `{}`", path.display()), "start the server first"]);
}

#[test]
fn a_socket_that_nobody_listens_on_is_told_from_what_is_none() {
    let (folder, path) = place();
    drop(UnixListener::bind(&path).unwrap());
    let mut stale = bench(&path, 1);
    stale.spec.target.ready.within = Nanos::from_millis(400);
    assert_says(&refusal(stale), &[&format!("nothing listens on the socket `{}`", path.display())]);
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut other = bench(&file, 1);
    other.spec.target.ready.within = Nanos::from_secs(3600);
    assert_says(&refusal(other), &["file` is not a socket; check `target.url`"]);
    let mut long = bench(&folder.path().join("x".repeat(110)), 1);
    long.spec.target.ready.within = Nanos::from_secs(3600);
    assert_says(&refusal(long), &["x` is too long for the path of a socket; check `target.url`"]);
}
