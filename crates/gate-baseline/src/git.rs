//! The `git` command: run without a shell, deaf to hooks and to settings that would change what it prints.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use gate_model::REDACTED;

use crate::BaselineError;

/// Variables that would point git at another repository than the folder's (a hook is started with some of them), or have
/// it read paths as patterns.
const MISLEADING: [&str; 13] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Settings over the user's own: nothing of theirs runs, signs, asks, or writes beside what was asked for. A transfer
/// that stands still ends.
const SETTINGS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.quotePath=false",
    "color.ui=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "push.gpgSign=false",
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=20",
];

/// How long a remote may take for one answer.
pub(crate) const LONGEST_ANSWER: Duration = Duration::from_secs(30);

/// How many lines of a remote's own words are passed on.
const MOST_LINES: usize = 3;

/// Git at a folder.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    folder: PathBuf,
}

impl Git {
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    /// A command that is ready to run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.with_settings(&SETTINGS, arguments)
    }

    /// The text that a command prints under the person's own settings, where it succeeds: for what asks about them.
    pub(crate) fn text_as_set(&self, arguments: &[&str]) -> Result<String, BaselineError> {
        let output = self.with_settings(&[], arguments).output().map_err(BaselineError::NoGit)?;
        text_of(arguments, &output)
    }

    fn with_settings(&self, settings: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        // What a commit holds is what its hash says, not what a `refs/replace` of the clone puts in its place.
        command.args(["--no-replace-objects", "--no-pager", "--literal-pathspecs"]).arg("-C").arg(&self.folder);
        settings.iter().for_each(|setting| {
            command.args(["-c", setting]);
        });
        MISLEADING.iter().for_each(|variable| {
            command.env_remove(variable);
        });
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What a command prints, with how it ended.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<Output, BaselineError> {
        self.command(arguments).output().map_err(BaselineError::NoGit)
    }

    /// The same of a command that asks a remote: it is ended after so long, and `None` then.
    pub(crate) fn ask_within(&self, arguments: &[&str], longest: Duration) -> Result<Option<Output>, BaselineError> {
        let mut child = self.command(arguments).spawn().map_err(BaselineError::NoGit)?;
        // What it prints is read meanwhile: a pipe that is full would hold it up.
        let (stdout, stderr) = (collected(child.stdout.take()), collected(child.stderr.take()));
        let until = Instant::now() + longest;
        let status = loop {
            match child.try_wait().map_err(BaselineError::NoGit)? {
                Some(status) => break status,
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                None => {
                    // Where it ended at this very moment there is nothing to kill.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Ok(None);
                }
            }
        };
        // A connection that ssh keeps for later holds the pipe open, and says no more.
        let rest = |pipe: Receiver<Vec<u8>>| pipe.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        Ok(Some(Output { status, stdout: rest(stdout), stderr: rest(stderr) }))
    }

    /// The text that a command prints, where it succeeds.
    pub(crate) fn text(&self, arguments: &[&str]) -> Result<String, BaselineError> {
        text_of(arguments, &self.ask(arguments)?)
    }

    /// The line that a command prints; `None` where it prints none, or fails as it does where there is nothing to say.
    pub(crate) fn line(&self, arguments: &[&str]) -> Result<Option<String>, BaselineError> {
        let output = self.ask(arguments)?;
        let line = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
        Ok(Some(line).filter(|line| output.status.success() && !line.is_empty()))
    }

    /// The text that a command prints when it is given this to read.
    pub(crate) fn text_from(&self, mut command: Command, input: &[u8]) -> Result<String, BaselineError> {
        let arguments: Vec<String> = command.get_args().map(|part| part.to_string_lossy().into_owned()).collect();
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(BaselineError::NoGit)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that failed reads no further: how it ended says why.
            let _ = stdin.write_all(input);
        }
        let output = child.wait_with_output().map_err(BaselineError::NoGit)?;
        text_of(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), &output)
    }

    /// A reader of blobs.
    pub(crate) fn blobs(&self) -> Result<Blobs, BaselineError> {
        let mut command = self.command(&["cat-file", "--batch"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(BaselineError::NoGit)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Ok(Blobs { child, stdin, stdout })
    }
}

/// One `git cat-file --batch`, asked for one object after another.
#[derive(Debug)]
pub(crate) struct Blobs {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Blobs {
    /// An object's bytes, by its id.
    pub(crate) fn read(&mut self, id: &str) -> std::io::Result<Vec<u8>> {
        let closed = || std::io::Error::other("git has ended");
        let (stdin, stdout) = (self.stdin.as_mut().ok_or_else(closed)?, self.stdout.as_mut().ok_or_else(closed)?);
        writeln!(stdin, "{id}")?;
        stdin.flush()?;
        let mut head = String::new();
        stdout.read_line(&mut head)?;
        let size = head.trim_end().rsplit(' ').next().and_then(|size| size.parse::<u64>().ok());
        let Some(size) = size else {
            return Err(std::io::Error::other(format!("object {id} is not in the repository")));
        };
        let mut bytes = Vec::new();
        stdout.by_ref().take(size + 1).read_to_end(&mut bytes)?;
        if bytes.pop() != Some(b'\n') {
            return Err(std::io::Error::other(format!("object {id} ends early")));
        }
        Ok(bytes)
    }
}

impl Drop for Blobs {
    fn drop(&mut self) {
        // It ends when there is nothing more to be asked.
        self.stdin = None;
        self.stdout = None;
        let _ = self.child.wait();
    }
}

fn text_of(arguments: &[&str], output: &Output) -> Result<String, BaselineError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(BaselineError::Git { command: subcommand(arguments), message: complaint(output) })
}

/// The subcommand among a command's arguments: the first that is neither an option of git's own nor its value.
fn subcommand(arguments: &[&str]) -> String {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "-C" | "-c" => {
                arguments.next();
            }
            option if option.starts_with('-') => {}
            name => return name.to_owned(),
        }
    }
    String::new()
}

/// What is read from a pipe until it is closed, on a thread of its own.
fn collected(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What breaks off is what there is; nobody may be waiting for it any more.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        let _ = sender.send(bytes);
    });
    receiver
}

/// What the remote's own programs say, such as the hook that refuses a push: the first lines, without credentials.
pub(crate) fn remote_words(output: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = text.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).take(MOST_LINES).collect();
    (!lines.is_empty()).then(|| without_credentials(&lines.join("; ")))
}

/// The line of git's complaint that says most, without credentials.
pub(crate) fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let says = |line: &&str| ["fatal: ", "error: "].iter().any(|start| line.starts_with(start));
    let Some(line) = lines().find(says).or_else(|| lines().next()) else {
        return format!("it ended with {}", output.status);
    };
    without_credentials(line.trim_start_matches("fatal: ").trim_start_matches("error: "))
}

/// A text with what stands before `@` in its URLs replaced.
pub(crate) fn without_credentials(text: &str) -> String {
    let mut pieces = text.split("://");
    let mut clean = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        clean.push_str("://");
        let end = piece.find(|symbol: char| symbol.is_whitespace() || "/'\"`?#".contains(symbol));
        let (authority, rest) = piece.split_at(end.unwrap_or(piece.len()));
        match authority.rsplit_once('@') {
            Some((_, host)) => clean.extend([REDACTED, "@", host]),
            None => clean.push_str(authority),
        }
        clean.push_str(rest);
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_urls_are_out() {
        for (text, clean) in [
            ("no url at all: user@host", "no url at all: user@host"),
            (
                "unable to access 'https://me:t0k@n@h.example/x.git/': no",
                "unable to access 'https://***@h.example/x.git/': no",
            ),
            ("https://token@h.example", "https://***@h.example"),
            ("https://h.example/a@b and ssh://git@h/x", "https://h.example/a@b and ssh://***@h/x"),
        ] {
            assert_eq!(without_credentials(text), clean);
        }
    }

    #[test]
    fn a_remote_that_hangs_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("git://{}/x", silent.local_addr().unwrap());
        let git = Git::at(Path::new("."));
        assert!(git.ask_within(&["ls-remote", &url], Duration::from_millis(200)).unwrap().is_none());
        let answer = git.ask_within(&["--version"], LONGEST_ANSWER).unwrap().unwrap();
        assert!(answer.status.success() && answer.stdout.starts_with(b"git version"));
        let refused = git.ask_within(&["no-such-command"], LONGEST_ANSWER).unwrap().unwrap();
        assert!(complaint(&refused).contains("no-such-command"));
    }

    #[test]
    fn the_subcommand_is_named() {
        assert_eq!(subcommand(&["-C", "/x", "--no-pager", "-c", "a=b", "push", "origin"]), "push");
        assert_eq!(subcommand(&["fetch"]), "fetch");
    }
}
