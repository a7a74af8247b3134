//! Running the binary, the simulated engine and scripted servers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use gate_model::{Cause, CheckOutcome, Finding, Run, Verdict};
use serde_json::Value;

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The binary under test.
pub(crate) fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY
        .get_or_init(|| {
            if let Some(path) = std::env::var_os("GATE_BIN") {
                return path.into();
            }
            let output = Command::new(env!("CARGO"))
                .args(["build", "--package", "gate", "--message-format", "json"])
                .current_dir(root())
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let messages = String::from_utf8(output.stdout).unwrap();
            let mut executables = messages.lines().filter_map(|line| {
                let message: Value = serde_json::from_str(line).ok()?;
                message.get("executable")?.as_str().map(PathBuf::from)
            });
            executables.next_back().expect("cargo names the binary it built")
        })
        .clone()
}

/// A folder of its own, in which the binary is run.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

/// What a finished process left.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into it.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn verdict(&self, gate: &str) -> Verdict {
        serde_json::from_str(&self.read(&format!(".gate/{gate}/verdict.json"))).unwrap()
    }

    pub(crate) fn run(&self, gate: &str) -> Run {
        Run::from_journal(&self.read(&format!(".gate/{gate}/run.jsonl"))).unwrap()
    }

    pub(crate) fn junit(&self, gate: &str) -> String {
        self.read(&format!(".gate/{gate}/junit.xml"))
    }

    /// A command of the binary in this folder, with nothing of the caller's environment that could sway it.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let of_job = ["GATE_", "GIT_", "GITHUB_", "CI_"].iter().any(|prefix| name.starts_with(prefix));
            if of_job || name.to_ascii_lowercase().ends_with("_proxy") || name == "NO_COLOR" {
                command.env_remove(name);
            }
        }
        // No person's settings of git.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        // A repository around the temporary folder is none of the test's.
        command.env("GIT_CEILING_DIRECTORIES", std::env::temp_dir());
        command
    }

    /// Runs git in this folder, and fails where git does.
    #[track_caller]
    pub(crate) fn git(&self, words: &[&str]) -> String {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            command.env_remove(name);
        }
        let output = command
            .args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"])
            .args(words)
            .current_dir(self.folder.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits everything.
    #[track_caller]
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs the binary to its end, and again where this machine was too busy to measure. A target that remembers
    /// earlier requests needs [`Place::gate_once`].
    pub(crate) fn gate(&self, words: &[&str]) -> Ended {
        self.undisturbed(|| self.gate_once(words))
    }

    /// Runs the binary to its end.
    pub(crate) fn gate_once(&self, words: &[&str]) -> Ended {
        Ended::of(self.command(words).output().unwrap())
    }

    /// Runs the binary to its end, and again where this machine was too busy for a run that is kept as a baseline. The
    /// target must not remember earlier requests.
    pub(crate) fn gate_in_quiet(&self, words: &[&str]) -> Ended {
        let is_slow = |finding: &Finding| matches!(finding, Finding::ClientSlow(_));
        let is_disturbed = |verdict: &Verdict| is_taken_away(verdict) || verdict.findings.iter().any(is_slow);
        self.again_while(is_disturbed, || self.gate_once(words))
    }

    /// What a run gives that this machine did not disturb: the last of five where it always did.
    pub(crate) fn undisturbed<T>(&self, run: impl Fn() -> T) -> T {
        self.again_while(is_taken_away, run)
    }

    /// What a run gives whose verdicts are not like this: the last of five where they always are.
    fn again_while<T>(&self, is_disturbed: impl Fn(&Verdict) -> bool, run: impl Fn() -> T) -> T {
        for _ in 0..4 {
            let since = SystemTime::now();
            let ended = run();
            if !self.verdicts(since).iter().any(&is_disturbed) {
                return ended;
            }
        }
        run()
    }

    /// The verdicts written since then.
    fn verdicts(&self, since: SystemTime) -> Vec<Verdict> {
        let gates = std::fs::read_dir(self.path(".gate")).into_iter().flatten().flatten();
        let paths = gates.map(|gate| gate.path().join("verdict.json")).filter(|path| {
            std::fs::metadata(path).and_then(|file| file.modified()).is_ok_and(|written| written >= since)
        });
        paths.filter_map(|path| serde_json::from_str(&std::fs::read_to_string(path).unwrap()).ok()).collect()
    }

    /// Everything below the folder, as (path, text).
    pub(crate) fn everything(&self) -> Vec<(PathBuf, String)> {
        fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found);
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    found.push((path, String::from_utf8_lossy(&bytes).into_owned()));
                }
            }
        }
        let mut found = Vec::new();
        walk(self.folder.path(), &mut found);
        found
    }
}

/// Whether a verdict says that the client was too slow to measure: that is the machine's doing, and says nothing of the
/// binary.
fn is_taken_away(verdict: &Verdict) -> bool {
    verdict.checks.iter().any(|check| match &check.outcome {
        CheckOutcome::CouldNotMeasure { cause } => matches!(
            cause,
            Cause::ClientLate { .. } | Cause::LoopDelay { .. } | Cause::ClientCpu { .. } | Cause::RateShort { .. }
        ),
        _ => false,
    })
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails with everything the process said where the code is another.
    #[track_caller]
    pub(crate) fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails where stderr lacks a text.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "`{text}` is not in:\n{}", self.stderr);
        self
    }
}

/// `gate sim` as a process of its own; killed when dropped.
pub(crate) struct Sim {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Sim {
    /// Serves these `target.sim` parameters, in flow style.
    pub(crate) fn start(place: &Place, params: &str) -> Self {
        let spec = format!("version: 1\nname: engine\ntarget: {{sim: {{{params}}}}}\nrequire: [ttft.p50 < 10s]\n");
        place.write("engine.yaml", &spec);
        let mut child = place
            .command(&["sim", "engine.yaml", "--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let address = loop {
            let line = lines.next().unwrap_or_else(|| panic!("the engine ended: {said}")).unwrap();
            said += &line;
            if let Some((_, rest)) = line.split_once("simulated engine at http://") {
                break rest.split(' ').next().unwrap().parse().unwrap();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What it really sent.
    pub(crate) fn truth(&self) -> Value {
        serde_json::from_str(&get(self.address, "/truth")).unwrap()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The outputs of a step of GitHub's runner, by its rules: `name=value`, or several lines between two delimiters.
pub(crate) fn outputs_of_step(text: &str) -> Vec<(String, String)> {
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let (name, value) = match (line.split_once('='), line.split_once("<<")) {
            (Some((name, value)), heredoc) if heredoc.is_none_or(|(before, _)| before.len() > name.len()) => {
                (name, value.to_owned())
            }
            (_, Some((name, delimiter))) => {
                (name, lines.by_ref().take_while(|line| *line != delimiter).collect::<Vec<_>>().join("\n"))
            }
            _ => panic!("no output: {line}"),
        };
        found.push((name.to_owned(), value));
    }
    found
}

/// The body of a GET.
pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("headers end");
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        let (mut rest, mut whole) = (body, String::new());
        while let Some((size, more)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            if size == 0 {
                break;
            }
            whole += &more[..size];
            rest = &more[size + 2..];
        }
        return whole;
    }
    body.to_owned()
}

/// A server that answers every request on every connection in one scripted way, until the test ends.
pub(crate) fn serve(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), answer) = (stream, answer.clone()) else { break };
            std::thread::spawn(move || {
                while let Some(request) = read_request(&mut stream) {
                    answer(&request, &mut stream);
                }
            });
        }
    });
    address
}

/// One request with its body; `None` at the end of the connection.
pub(crate) fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, value)| value.trim().parse().unwrap());
            if body.len() >= length {
                return Some(text);
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// A whole answer with a content length.
pub(crate) fn answer(stream: &mut impl Write, status: &str, content_type: &str, body: &str) {
    drop(write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ));
    drop(stream.flush());
}

/// A stream of `openai-chat` with two tokens.
pub(crate) const TWO_WORDS: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}],",
    "\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":2}}\n\n",
    "data: [DONE]\n\n",
);

/// Waits until something holds; panics after half a minute.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A gate of `count` quick requests against a URL, with limits that only a broken server breaks. All are sent, however
/// they fare.
pub(crate) fn quick_spec(name: &str, url: &str, count: u32) -> String {
    format!(
        "version: 1
name: {name}
target: {{url: '{url}', model: m, ready: {{within: 2s}}}}
load: {{rps: 40, iterations: {count}, warmup: 1}}
prompts: {{input_tokens: 50, output_tokens: 8}}
timeouts: {{connect: 2s, first_token: 2s, stall: 1s, total: 20s}}
abort: {{connection_failures: 0, lost: false}}
require: [ttft.p50 < 10s]
"
    )
}
