//! `gate hook`: a push that a violated gate stops.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::harness::{Ended, Place, binary};

/// A gate of the simulated engine, whose requests take this long to the first token.
fn spec(ttft: &str) -> String {
    format!(
        "version: 1
name: chat
target: {{sim: {{ttft: {ttft}, tpot: 1ms}}}}
load: {{rps: 40, iterations: 20, warmup: 1}}
prompts: {{input_tokens: 50, output_tokens: 8}}
require: [ttft.p50 < 150ms]
"
    )
}

/// A server that nobody runs.
const NOBODY: &str = "version: 1
name: chat
target: {url: 'http://127.0.0.1:9', model: m, ready: {within: 1s}}
load: {rps: 40, iterations: 20, warmup: 1}
require: [ttft.p50 < 150ms]
";

/// A repository with a gate, and a bare one that it pushes to.
struct Pair {
    place: Place,
    remote: Place,
}

impl Pair {
    fn new(text: &str) -> Self {
        let (place, remote) = (Place::new(), Place::new());
        remote.git(&["init", "--quiet", "--bare"]);
        place.git(&["init", "--quiet"]);
        place.git(&["config", "user.name", "A"]);
        place.git(&["config", "user.email", "a@example.com"]);
        place.write("gates/chat.yaml", text);
        place.write(".gitignore", ".gate/\n");
        place.commit("the gate");
        place.git(&["remote", "add", "origin", remote.path("").to_str().unwrap()]);
        Self { place, remote }
    }

    fn hook(&self, action: &str) -> Ended {
        self.place.gate_once(&["hook", action])
    }

    /// Runs git as a person does, in a folder of the checkout. `gate` is not on PATH.
    fn git(&self, folder: &str, words: &[&str], variables: &[(&str, &str)]) -> Ended {
        let mut command = self.place.command(&[]);
        let mut git = Command::new("git");
        for (name, value) in command.stdin(Stdio::null()).get_envs() {
            match value {
                Some(value) => git.env(name, value),
                None => git.env_remove(name),
            };
        }
        git.args(words).current_dir(self.place.path(folder)).envs(variables.iter().copied());
        Ended::of(git.output().unwrap())
    }

    fn push(&self, variables: &[(&str, &str)]) -> Ended {
        self.place.undisturbed(|| self.git(".", &["push", "origin", "HEAD:refs/heads/main"], variables))
    }

    fn pushed(&self) -> String {
        self.remote.git(&["for-each-ref", "--format=%(refname)"])
    }
}

#[test]
fn a_violated_gate_stops_the_push_until_it_is_healthy() {
    let pair = Pair::new(&spec("300ms"));
    pair.hook("install").expect_code(0).says("pre-push").says("--no-verify").says("gate hook remove");
    pair.hook("install").expect_code(0);
    let hook = pair.place.path(".git/hooks/pre-push");
    assert_eq!(std::fs::metadata(&hook).unwrap().permissions().mode() & 0o777, 0o755);
    let stopped = pair.push(&[]);
    stopped.expect_code(1).says("ttft.p50").says("the push is stopped").says("GATE_SKIP=1");
    assert_eq!(pair.pushed(), "");
    assert_eq!(pair.place.git(&["status", "--porcelain"]), "");

    // Neither tags nor what is deleted is measured, and nobody is locked out.
    pair.place.git(&["tag", "v1"]);
    pair.git(".", &["push", "origin", "v1"], &[]).expect_code(0);
    assert_eq!(pair.pushed(), "refs/tags/v1");
    pair.git(".", &["push", "origin", ":v1"], &[]).expect_code(0);
    pair.push(&[("GATE_SKIP", "1")]).expect_code(0).says("GATE_SKIP is set");
    assert_eq!(pair.pushed(), "refs/heads/main");
    pair.git(".", &["push", "--no-verify", "origin", "HEAD:refs/heads/other"], &[]).expect_code(0);
    pair.git(".", &["push", "origin", ":other"], &[]).expect_code(0);

    pair.place.write("gates/chat.yaml", &spec("20ms"));
    pair.place.commit("faster");
    pair.push(&[]).expect_code(0).says("ttft.p50");

    pair.place.write("gates/chat.yaml", &spec("300ms"));
    pair.place.commit("slower");
    pair.push(&[]).expect_code(1);
    pair.hook("remove").expect_code(0).says("removed");
    assert!(!hook.exists());
    pair.hook("remove").expect_code(0).says("nothing to remove");
    pair.push(&[]).expect_code(0);
}

#[test]
fn what_could_not_be_measured_stops_nobody_and_a_wrong_spec_does() {
    let pair = Pair::new(NOBODY);
    pair.hook("install").expect_code(0);
    pair.push(&[]).expect_code(0).says("could not measure").says("the push goes on");
    pair.place.write("gates/chat.yaml", "version: 1\n");
    pair.place.commit("wrong");
    pair.push(&[]).expect_code(1).says("a spec is wrong");
    std::fs::remove_dir_all(pair.place.path("gates")).unwrap();
    pair.place.commit("no gates");
    pair.push(&[]).expect_code(0).says("there is no folder gates");
}

#[test]
fn the_push_may_come_from_anywhere() {
    let pair = Pair::new(&spec("300ms"));
    pair.place.write("deep/folder/file", "");
    pair.place.commit("a folder");
    let ended = {
        let mut command = pair.place.command(&["hook", "install"]);
        Ended::of(command.current_dir(pair.place.path("deep/folder")).output().unwrap())
    };
    ended.expect_code(0);
    let push = ["push", "origin", "HEAD:refs/heads/main"];
    pair.place.undisturbed(|| pair.git("deep/folder", &push, &[])).expect_code(1).says("the push is stopped");
    let own = pair.place.path(".git");
    let named = [("GIT_DIR", own.to_str().unwrap()), ("GIT_WORK_TREE", pair.place.path("").to_str().unwrap())]
        .map(|(name, value)| (name, value.to_owned()));
    let named: Vec<_> = named.iter().map(|(name, value)| (*name, value.as_str())).collect();
    pair.place.undisturbed(|| pair.git("deep", &push, &named)).expect_code(1).says("the push is stopped");

    // A worktree has the hooks of its repository, and its own gates.
    let trees = Place::new();
    let tree = trees.path("it's a tree");
    pair.place.git(&["worktree", "add", "--quiet", "-b", "side", tree.to_str().unwrap()]);
    std::fs::write(tree.join("gates/chat.yaml"), spec("20ms")).unwrap();
    let words = ["-C", tree.to_str().unwrap(), "push", "origin", "HEAD:refs/heads/side"];
    pair.git(".", &words, &[]).expect_code(0).says("ttft.p50");
    assert!(tree.join(".gate/chat/verdict.json").exists());
}

#[test]
fn gates_below_the_root_are_checked_where_they_are() {
    let pair = Pair::new(&spec("20ms"));
    pair.place.write("it's here/gates/slow.yaml", &spec("300ms").replace("name: chat", "name: slow"));
    pair.place.commit("gates of their own");
    let ended = {
        let mut command = pair.place.command(&["hook", "install"]);
        Ended::of(command.current_dir(pair.place.path("it's here")).output().unwrap())
    };
    ended.expect_code(0);
    pair.push(&[]).expect_code(1).says("slow");
    assert!(pair.place.path("it's here/.gate/slow/verdict.json").exists());
}

#[test]
fn a_hook_of_somebody_elses_is_left_as_it_is() {
    let pair = Pair::new(&spec("20ms"));
    let theirs = "#!/bin/sh\nexit 0\n";
    pair.place.write(".git/hooks/pre-push", theirs);
    pair.hook("install").expect_code(2).says("left as it is").says("gate check < /dev/null");
    pair.hook("remove").expect_code(0).says("left as it is");
    assert_eq!(pair.place.read(".git/hooks/pre-push"), theirs);

    // So is ours with something added to it.
    std::fs::remove_file(pair.place.path(".git/hooks/pre-push")).unwrap();
    pair.hook("install").expect_code(0);
    let added = pair.place.read(".git/hooks/pre-push") + "echo more\n";
    pair.place.write(".git/hooks/pre-push", &added);
    pair.hook("install").expect_code(2);
    pair.hook("remove").expect_code(0);
    assert_eq!(pair.place.read(".git/hooks/pre-push"), added);

    // And a link, whatever it leads to.
    std::fs::remove_file(pair.place.path(".git/hooks/pre-push")).unwrap();
    std::os::unix::fs::symlink("nowhere", pair.place.path(".git/hooks/pre-push")).unwrap();
    pair.hook("install").expect_code(2);
}

#[test]
fn the_hook_goes_where_git_looks_for_it_in_this_repository() {
    let pair = Pair::new(&spec("300ms"));
    pair.place.git(&["config", "core.hooksPath", "tools/hooks"]);
    pair.hook("install").expect_code(0).says("tools/hooks/pre-push");
    assert!(!pair.place.path(".git/hooks/pre-push").exists());
    pair.push(&[]).expect_code(1).says("the push is stopped");
    pair.hook("remove").expect_code(0);
    assert!(!pair.place.path("tools/hooks/pre-push").exists());

    let shared = Place::new();
    pair.place.git(&["config", "core.hooksPath", shared.path("").to_str().unwrap()]);
    pair.hook("install").expect_code(2).says("not this repository's own").says("gate check < /dev/null");
    assert!(shared.everything().is_empty());
    Place::new().gate_once(&["hook", "install"]).expect_code(2).says("in no git repository");
}

#[test]
fn the_program_on_path_comes_first_and_none_stops_nobody() {
    let pair = Pair::new(&spec("300ms"));
    pair.hook("install").expect_code(0);
    let tools = Place::new();
    tools.write("gate", "#!/bin/sh\necho \"stand-in $*\" >&2\ncat\nexit 70\n");
    std::fs::set_permissions(tools.path("gate"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.path("").display(), std::env::var("PATH").unwrap());
    pair.push(&[("PATH", &path)]).expect_code(1).says("stand-in check").says("ended with 70");

    let hook = pair.place.read(".git/hooks/pre-push");
    let gone = hook.replace(binary().canonicalize().unwrap().to_str().unwrap(), "/nowhere/gate");
    assert_ne!(gone, hook);
    pair.place.write(".git/hooks/pre-push", &gone);
    pair.push(&[]).expect_code(0).says("not on PATH");
}
