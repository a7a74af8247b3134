//! Commits, their history, and where a change forked off, in real repositories.

use std::fs;

use gate_baseline::{BaselineError, Repository, Surroundings};

use crate::support::{AGAIN, World, again, commit_in, git, noted, onto, repository};

fn reversed(ids: &[String]) -> Vec<String> {
    ids.iter().rev().cloned().collect()
}

#[test]
fn no_repository_and_no_commit_are_said_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let error = Repository::of(folder.path()).unwrap_err();
    assert!(matches!(error, BaselineError::NoRepository { .. }), "{error}");
    assert!(error.to_string().contains("not a git repository"), "{error}");
    git(folder.path(), &["init", "--quiet"]);
    let repository = repository(folder.path());
    let error = repository.commit(&Surroundings::default()).unwrap_err();
    assert!(matches!(error, BaselineError::NoCommit(_)) && error.to_string().contains("nothing is committed yet"));
    assert!(matches!(repository.fork_point(&onto("main")), Err(BaselineError::NoCommit(_))));
}

#[test]
fn a_commit_is_noted_with_its_first_parents_and_branch() {
    let (world, main) = World::with_main(120);
    let repository = repository(&world.work());
    let commit = repository.commit(&Surroundings::default()).unwrap();
    assert_eq!((commit.id.as_str(), commit.branch.as_deref(), commit.dirty), (main[119].as_str(), Some("main"), false));
    assert_eq!(commit.parents, reversed(&main[19..119]), "the nearest hundred");
    let named = Surroundings { branch: Some("feature/x".to_owned()), ..Surroundings::default() };
    assert_eq!(repository.commit(&named).unwrap().branch.as_deref(), Some("feature/x"));
    fs::write(world.work().join("untracked"), "").unwrap();
    assert!(!repository.commit(&named).unwrap().dirty, "only tracked files count");
    // The same text, written again: git looks into the file, and would note in its index that it did.
    fs::write(world.work().join("m0.txt"), "m0").unwrap();
    let index = fs::read(world.work().join(".git/index")).unwrap();
    assert!(!repository.commit(&named).unwrap().dirty);
    assert!(fs::read(world.work().join(".git/index")).unwrap() == index);
    fs::write(world.work().join("m0.txt"), "changed").unwrap();
    assert!(repository.commit(&named).unwrap().dirty);
    git(&world.work(), &["checkout", "--quiet", "--force", &main[3]]);
    let detached = repository.commit(&Surroundings::default()).unwrap();
    assert_eq!(
        (detached.id.as_str(), detached.branch, detached.parents),
        (main[3].as_str(), None, reversed(&main[..3]))
    );
}

#[test]
fn a_change_forks_off_where_it_left_its_base() {
    let (world, main) = World::with_main(4);
    let work = world.work();
    git(&work, &["checkout", "--quiet", "-b", "change", &main[1]]);
    world.commit("c0");
    world.commit("c1");
    let repository = repository(&work);
    assert_eq!(repository.fork_point(&onto("main")).unwrap(), main[1]);
    // Without a named base: the remote's default branch, then `main`.
    assert_eq!(repository.fork_point(&Surroundings::default()).unwrap(), main[1]);
    assert_eq!(repository.fork_point(&onto("")).unwrap(), main[1]);
    git(&work, &["branch", "--quiet", "release", &main[0]]);
    git(&work, &["push", "--quiet", "origin", "release"]);
    git(&work, &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/release"]);
    assert_eq!(repository.fork_point(&Surroundings::default()).unwrap(), main[0]);
    // The remote's branch comes before the clone's own, which may be old.
    git(&work, &["branch", "--quiet", "--force", "main", &main[0]]);
    assert_eq!(repository.fork_point(&onto("main")).unwrap(), main[1]);
    // A merge of the base moves the point on.
    git(&work, &["merge", "--quiet", "-m", "merge", "origin/main"]);
    assert_eq!(repository.fork_point(&onto("main")).unwrap(), main[3]);
    // Where the checkout is the base itself, it is its own fork point.
    git(&work, &["checkout", "--quiet", &main[3]]);
    assert_eq!(repository.fork_point(&onto("main")).unwrap(), main[3]);
}

#[test]
fn names_are_never_read_as_options_or_expressions() {
    let (world, main) = World::with_main(2);
    let repository = repository(&world.work());
    for name in ["--help", "-D", "main~1", "main^{commit}", "../heads/main", "@{-1}", "main:m0.txt", "no such", "*"] {
        let error = repository.fork_point(&onto(name)).unwrap_err();
        assert!(matches!(error, BaselineError::NoForkPoint(_)), "{name}: {error}");
    }
    for id in ["HEAD", "--all", "main", "-n1", &main[0][..10]] {
        assert!(matches!(repository.lineage(id), Err(BaselineError::Unusable { .. })), "{id}");
        assert!(repository.file_at(id, "m0.txt").is_err(), "{id}");
    }
    let error = repository.fork_point(&onto("gone")).unwrap_err().to_string();
    assert!(error.contains("branch `gone` is not in this clone (fetch it"), "{error}");
}

#[test]
fn unrelated_histories_share_nothing() {
    let (world, _) = World::with_main(1);
    git(&world.work(), &["checkout", "--quiet", "--orphan", "other"]);
    world.commit("o");
    let error = repository(&world.work()).fork_point(&onto("main")).unwrap_err().to_string();
    assert!(error.ends_with("nothing is shared with the base branch"), "{error}");
}

#[test]
fn first_parents_leave_merged_branches_out() {
    let (world, main) = World::with_main(2);
    let work = world.work();
    git(&work, &["checkout", "--quiet", "-b", "side"]);
    let side = world.commit("s0");
    git(&work, &["checkout", "--quiet", "main"]);
    let third = world.commit("m2");
    git(&work, &["merge", "--quiet", "--no-ff", "-m", "merge", "side"]);
    let merge = git(&work, &["rev-parse", "HEAD"]);
    let lineage = repository(&work).lineage(&merge).unwrap();
    assert_eq!(lineage.ids, [merge, third, main[1].clone(), main[0].clone()]);
    assert!(!lineage.is_cut && !lineage.ids.contains(&side));
}

#[test]
fn a_shallow_clone_knows_where_it_is_cut() {
    let (world, main) = World::with_main(6);
    for (name, depth, known) in [("one", "--depth=1", 2), ("three", "--depth=3", 4)] {
        let clone = world.clone(name, &[depth]);
        let repository = repository(&clone);
        assert!(repository.is_shallow().unwrap());
        let lineage = repository.lineage(&main[5]).unwrap();
        assert_eq!((lineage.ids.clone(), lineage.is_cut), (reversed(&main)[..known].to_vec(), true), "{name}");
        assert_eq!(repository.commit(&Surroundings::default()).unwrap().parents, reversed(&main)[1..known].to_vec());
        assert_eq!(repository.fork_point(&onto("main")).unwrap(), main[5]);
        // A run that was kept knows more of its own past.
        let stored = [noted(&main[3], &reversed(&main[..3])), noted(&main[5], &reversed(&main[3..5]))];
        let whole = lineage.continued(&stored);
        assert_eq!(whole.ids, reversed(&main), "{name}");
    }
    assert!(!repository(&world.work()).is_shallow().unwrap());
    let whole = repository(&world.work()).lineage(&main[5]).unwrap();
    assert_eq!((whole.ids, whole.is_cut), (reversed(&main), false));
}

#[test]
fn a_shallow_clone_of_a_change_says_what_to_do() {
    let (world, _) = World::with_main(3);
    git(&world.work(), &["checkout", "--quiet", "-b", "change"]);
    world.commit("c0");
    git(&world.work(), &["push", "--quiet", "origin", "change"]);
    let clone = world.clone("clone", &["--depth=1", "--branch=change"]);
    let error = repository(&clone).fork_point(&onto("main")).unwrap_err().to_string();
    assert!(error.contains("`main` is not in this clone") && error.contains("fetch-depth: 0"), "{error}");
    git(&clone, &["fetch", "--quiet", "--depth=1", "origin", "main:refs/remotes/origin/main"]);
    let error = repository(&clone).fork_point(&onto("main")).unwrap_err().to_string();
    assert!(error.contains("nothing is shared") && error.contains("fetch-depth: 0"), "{error}");
}

/// The checkout that GitHub makes for a pull request: its merge into the base, alone and detached.
fn merge_checkout(world: &World, name: &str, depth: &str) -> std::path::PathBuf {
    let clone = world.path(name);
    fs::create_dir(&clone).unwrap();
    git(&clone, &["init", "--quiet"]);
    git(&clone, &["remote", "add", "origin", &world.url()]);
    let mut fetch = vec!["fetch", "--quiet", "--no-tags"];
    fetch.extend(Some(depth).filter(|depth| !depth.is_empty()));
    fetch.extend(["origin", "+refs/pull/7/merge:refs/remotes/pull/7/merge"]);
    git(&clone, &fetch);
    git(&clone, &["checkout", "--quiet", "--force", "refs/remotes/pull/7/merge"]);
    clone
}

#[test]
fn githubs_merge_checkout_forks_off_its_first_parent() {
    let (world, main) = World::with_main(4);
    let work = world.work();
    git(&work, &["checkout", "--quiet", "-b", "change", &main[1]]);
    let change = world.commit("c0");
    git(&work, &["checkout", "--quiet", "--detach", "main"]);
    git(&work, &["merge", "--quiet", "--no-ff", "-m", "merge", "change"]);
    git(&work, &["push", "--quiet", "origin", "HEAD:refs/pull/7/merge"]);
    let merge = git(&work, &["rev-parse", "HEAD"]);
    for (name, depth) in [("alone", "--depth=1"), ("two", "--depth=2"), ("whole", "")] {
        let repository = repository(&merge_checkout(&world, name, depth));
        assert_eq!(repository.commit(&Surroundings::default()).unwrap().id, merge);
        let fork = repository.fork_point(&onto("main")).unwrap();
        assert_eq!(fork, main[3], "{name}");
        let lineage = repository.lineage(&fork).unwrap();
        assert!(lineage.ids[0] == main[3] && !lineage.ids.contains(&change), "{name}: {lineage:?}");
        assert_eq!(lineage.is_cut, !depth.is_empty());
    }
    // A merge that is no such checkout claims nothing about its parents.
    let clone = merge_checkout(&world, "unknown", "--depth=1");
    git(&clone, &["update-ref", "refs/remotes/pull/7/head", "HEAD"]);
    git(&clone, &["update-ref", "-d", "refs/remotes/pull/7/merge"]);
    assert!(matches!(repository(&clone).fork_point(&onto("main")), Err(BaselineError::NoForkPoint(_))));
}

#[test]
fn any_folder_of_any_checkout_will_do() {
    let (world, main) = World::with_main(2);
    let work = world.work();
    fs::create_dir_all(work.join("a/b")).unwrap();
    assert_eq!(repository(&work.join("a/b")).root(), work.canonicalize().unwrap());
    // A linked worktree, of a clone and of a bare repository.
    git(&work, &["worktree", "add", "--quiet", "--detach", "../linked", &main[0]]);
    assert_eq!(repository(&world.path("linked")).commit(&Surroundings::default()).unwrap().id, main[0]);
    git(&world.path("remote.git"), &["worktree", "add", "--quiet", "../of-bare", "main"]);
    let commit = repository(&world.path("of-bare")).commit(&Surroundings::default()).unwrap();
    assert_eq!((commit.id.as_str(), commit.branch.as_deref()), (main[1].as_str(), Some("main")));
    assert!(Repository::of(&world.path("remote.git")).is_err(), "a bare repository has no checkout");
}

#[test]
fn a_file_is_read_as_a_commit_has_it() {
    let (world, _) = World::with_main(1);
    let work = world.work();
    fs::create_dir(work.join("gates")).unwrap();
    fs::write(work.join("gates/chat ü.yaml"), "old\n").unwrap();
    fs::write(work.join("binary"), [0xff, 0xfe]).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("m0.txt", work.join("link")).unwrap();
    let old = commit_in(&work, "specs");
    fs::write(work.join("gates/chat ü.yaml"), "new\n").unwrap();
    fs::remove_file(work.join("m0.txt")).unwrap();
    let new = commit_in(&work, "loosened");
    fs::write(work.join("gates/chat ü.yaml"), "newer\n").unwrap();

    let repository = repository(&work);
    let path = repository.relative(&work.join("gates/../gates/chat ü.yaml")).unwrap();
    assert_eq!(path, "gates/chat ü.yaml");
    assert_eq!(repository.file_at(&old, &path).unwrap().as_deref(), Some("old\n"));
    assert_eq!(repository.file_at(&new, &path).unwrap().as_deref(), Some("new\n"));
    assert_eq!(repository.file_at(&new, "m0.txt").unwrap(), None);
    assert_eq!(repository.file_at(&new, "gates/*.yaml").unwrap(), None, "no pattern");
    for path in ["gates", "binary"] {
        let error = repository.file_at(&new, path).unwrap_err().to_string();
        assert!(error.contains(path), "{error}");
    }
    #[cfg(unix)]
    assert!(repository.file_at(&new, "link").unwrap_err().to_string().contains("no plain file"));
    assert_eq!(repository.relative(&world.path("remote.git/HEAD")), None);
}

#[test]
fn settings_that_change_what_git_prints_do_not_matter() {
    let (world, main) = World::with_main(2);
    for (name, value) in
        [("color.ui", "always"), ("log.showSignature", "true"), ("status.short", "true"), ("core.quotePath", "true")]
    {
        git(&world.work(), &["config", name, value]);
    }
    let commit = repository(&world.work()).commit(&Surroundings::default()).unwrap();
    assert_eq!((commit.id.as_str(), commit.parents.as_slice(), commit.dirty), (main[1].as_str(), &main[..1], false));
}

#[test]
fn what_a_hook_is_started_with_leads_nowhere_else() {
    if std::env::var_os(AGAIN).is_none() {
        let name = "repositories::what_a_hook_is_started_with_leads_nowhere_else";
        again(name, &[("GIT_DIR", "/nowhere"), ("GIT_INDEX_FILE", "/nowhere"), ("GIT_GLOB_PATHSPECS", "1")]);
        return;
    }
    let (world, main) = World::with_main(2);
    let commit = repository(&world.work()).commit(&Surroundings::default()).unwrap();
    assert_eq!((commit.id.as_str(), commit.dirty), (main[1].as_str(), false));
}

#[test]
fn a_machine_without_git_is_told_so() {
    if std::env::var_os(AGAIN).is_none() {
        again("repositories::a_machine_without_git_is_told_so", &[("PATH", "/nowhere")]);
        return;
    }
    let error = Repository::of(std::path::Path::new(".")).unwrap_err();
    assert!(matches!(error, BaselineError::NoGit(_)), "{error}");
    assert!(error.to_string().starts_with("find git: ") && error.to_string().contains("install it"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_file_of_a_commit_is_found_by_the_path_it_has_in_the_checkout() {
    use std::os::unix::fs::symlink;

    let world = World::new();
    let work = world.work();
    let write = |name: &str, text: &str| {
        fs::create_dir_all(work.join(name).parent().unwrap()).unwrap();
        fs::write(work.join(name), text).unwrap();
    };
    write("gates/a.yaml", "one\n");
    write("other/b.yaml", "two\n");
    symlink("../other/b.yaml", work.join("gates/link.yaml")).unwrap();
    symlink("/etc/hostname", work.join("gates/out.yaml")).unwrap();
    symlink("gates", work.join("folder")).unwrap();
    let then = commit_in(&work, "then");
    let repository = repository(&work);
    let at = |path: &str| repository.bytes_at(&then, &work.join(path)).unwrap();
    let both = |path: &str, text: &str| assert_eq!(at(path).as_deref(), Some(text.as_bytes()), "{path}");
    both("gates/a.yaml", "one\n");
    both("gates/link.yaml", "two\n");
    both("folder/a.yaml", "one\n");
    both("gates/../gates/a.yaml", "one\n");
    for path in ["gates", "gates/none.yaml", "gates/out.yaml", "../outside.yaml"] {
        assert_eq!(at(path), None, "{path}");
    }
    // Whatever the checkout makes of a path later, the commit's own links count.
    fs::remove_file(work.join("gates/a.yaml")).unwrap();
    symlink("../other/b.yaml", work.join("gates/a.yaml")).unwrap();
    both("gates/a.yaml", "one\n");
    assert!(repository.bytes_at(&"0".repeat(40), &work.join("gates/a.yaml")).is_err());
    assert!(repository.bytes_at("HEAD", &work.join("gates/a.yaml")).is_err(), "only a full id");
    assert!(repository.has_commit(&then).unwrap() && !repository.has_commit(&"0".repeat(40)).unwrap());

    write("untracked", "");
    symlink("untracked", work.join("masked")).unwrap();
    for (path, tracked) in [
        ("other/b.yaml", true),
        ("gates/link.yaml", true),
        ("untracked", false),
        ("masked", false),
        (".git/config", false),
    ] {
        assert_eq!(repository.is_tracked(&work.join(path)).unwrap(), tracked, "{path}");
    }
    assert!(!repository.is_tracked(std::path::Path::new("/etc/hostname")).unwrap());
}

#[test]
fn hooks_are_where_git_looks_for_them() {
    let (world, _) = World::with_main(1);
    let work = world.work();
    let real =
        |path: std::path::PathBuf| path.parent().unwrap().canonicalize().unwrap().join(path.file_name().unwrap());
    let own = real(work.join(".git/hooks"));
    assert_eq!(real(repository(&work).hooks().unwrap()), own);
    let tree = world.path("tree");
    git(&work, &["worktree", "add", "--quiet", tree.to_str().unwrap()]);
    assert_eq!(real(repository(&tree).hooks().unwrap()), own, "worktrees share them");
    assert_eq!(real(repository(&tree).common_folder().unwrap()), real(work.join(".git")));
    git(&work, &["config", "core.hooksPath", "mine"]);
    assert_eq!(real(repository(&work).hooks().unwrap()), real(work.join("mine")));
    assert_eq!(real(repository(&tree).hooks().unwrap()), real(tree.join("mine")));
}
