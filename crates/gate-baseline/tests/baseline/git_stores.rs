//! Baselines in a ref of the repository.

use std::fs;
use std::path::Path;

use gate_baseline::{BaselineError, Shelf};
use gate_model::{BaselineStore, Noise};

use crate::support::{AGAIN, REF, World, again, at, git, git_command, git_shelf, ids, kept, noted, the_key};

fn open(name: &str, folder: &Path) -> Result<Shelf, BaselineError> {
    Shelf::open(&BaselineStore::Git(name.to_owned()), folder)
}

/// Everything about a checkout that a save must leave alone.
fn state(folder: &Path) -> Vec<String> {
    let index = fs::read(folder.join(".git/index")).unwrap();
    vec![
        format!("{index:?}"),
        git(folder, &["status", "--porcelain"]),
        git(folder, &["symbolic-ref", "HEAD"]),
        git(folder, &["for-each-ref", "refs/heads", "refs/tags", "refs/remotes"]),
        git(folder, &["stash", "list"]),
    ]
}

/// Hooks that would stop a push, a change of a ref, or a change of the index.
fn refuse_by_hooks(folder: &Path) {
    for hook in ["pre-push", "reference-transaction", "post-index-change"] {
        let path = folder.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\nexit 1\n").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

#[test]
fn only_a_ref_of_its_own_is_a_store() {
    let (world, _) = World::with_main(1);
    for name in [
        "main",
        "refs/heads/main",
        "refs/heads",
        "refs/tags/x",
        "refs/remotes/origin/x",
        "refs/stash",
        "-refs/x",
        "refs/a..b",
        "refs/a b",
        "refs/",
        "refs/gate/",
        "refs/gate-origin/x",
        "refs/x.lock",
        "refs/gate/x:y",
    ] {
        let error = open(name, &world.work()).unwrap_err();
        assert!(matches!(error, BaselineError::Unusable { .. }), "{name}: {error}");
        assert!(error.to_string().contains("refs/gate/baselines"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(open(REF, folder.path()), Err(BaselineError::NoRepository { .. })));
}

#[test]
fn a_save_reaches_other_clones_and_leaves_the_checkout_alone() {
    let (world, main) = World::with_main(2);
    let (work, other) = (world.work(), world.clone("other", &["--depth=1"]));
    fs::write(work.join("m0.txt"), "being worked on").unwrap();
    fs::write(work.join("staged"), "staged").unwrap();
    git(&work, &["add", "staged"]);
    refuse_by_hooks(&work);
    let before = {
        git_command(&work, &["update-index", "--refresh"]).output().unwrap();
        state(&work)
    };
    let mut shelf = git_shelf(&work);
    assert!(ids(&shelf).is_empty(), "a remote without the ref is an empty store");
    let baseline = kept("a", 1, Some(noted(&main[1], &main[..1])));
    shelf.save(&baseline).unwrap();
    shelf.save(&kept("b", 2, None)).unwrap();
    assert_eq!(ids(&shelf), ["b", "a"], "an open shelf shows what it saved");
    assert_eq!(state(&work), before);
    assert_eq!(fs::read_to_string(work.join("m0.txt")).unwrap(), "being worked on");

    let from_other = git_shelf(&other);
    assert_eq!((ids(&from_other), from_other.warning()), (vec!["b".to_owned(), "a".to_owned()], None));
    assert_eq!(from_other.load("chat", "a").unwrap(), baseline);
    assert_eq!(from_other.gates().unwrap(), ["chat"]);
    assert!(!other.join(".git/FETCH_HEAD").exists());
    let files = git(&world.path("remote.git"), &["ls-tree", "-r", "--name-only", REF]);
    let folder = &the_key().hash[..12];
    assert_eq!(files, format!("chat/{folder}/a.json\nchat/{folder}/b.json"));
    assert_eq!(git(&world.path("remote.git"), &["rev-list", "--count", REF]), "2");
    // The same again is no new commit.
    shelf.save(&kept("b", 2, None)).unwrap();
    assert_eq!(git(&world.path("remote.git"), &["rev-list", "--count", REF]), "2");
}

#[test]
fn pins_noise_and_prune_work_in_a_ref_too() {
    let (world, _) = World::with_main(1);
    let mut shelf = git_shelf(&world.work());
    (0..4).for_each(|minute| shelf.save(&kept(&format!("a{minute}"), minute, None)).unwrap());
    shelf.pin("chat", "a0").unwrap();
    let noise = Noise { runs: 3, found: at(1), tau: [("tpot.p50".to_owned(), 0.02)].into() };
    shelf.save_noise("chat", &the_key(), &noise).unwrap();
    assert_eq!(shelf.prune("chat", 1).unwrap(), ["a2", "a1"]);
    let other = git_shelf(&world.clone("other", &[]));
    assert_eq!(ids(&other), ["a3", "a0"]);
    assert!(other.list("chat").unwrap().entries[1].pinned);
    assert_eq!(other.noise("chat", &the_key()).unwrap(), Some(noise));
}

#[test]
fn a_pin_and_a_removal_that_meet_leave_the_baseline() {
    let (world, _) = World::with_main(1);
    let (work, other) = (world.work(), world.clone("other", &[]));
    let mut shelf = git_shelf(&work);
    (0..4).for_each(|minute| shelf.save(&kept(&format!("a{minute}"), minute, None)).unwrap());
    // Each sees the store as it was before the other came.
    let (mut pins, mut prunes) = (git_shelf(&work), git_shelf(&other));
    pins.pin("chat", "a0").unwrap();
    assert_eq!(prunes.prune("chat", 2).unwrap(), ["a1"], "the pin was first");
    let (mut pins, mut prunes) = (git_shelf(&work), git_shelf(&other));
    assert_eq!(prunes.prune("chat", 1).unwrap(), ["a2"]);
    pins.pin("chat", "a2").unwrap();
    for folder in [&work, &other] {
        let listing = git_shelf(folder).list("chat").unwrap();
        let left: Vec<_> = listing.entries.iter().map(|entry| (entry.id.as_str(), entry.pinned)).collect();
        assert_eq!(left, [("a3", false), ("a2", true), ("a0", true)], "the removal was first, and is undone");
    }
    git_shelf(&work).unpin("chat", "a0").unwrap();
    assert_eq!(git_shelf(&other).prune("chat", 1).unwrap(), ["a0"]);
}

#[test]
fn what_a_clone_kept_alone_is_read_beside_its_remote() {
    let (world, _) = World::with_main(1);
    let (work, other) = (world.work(), world.clone("other", &[]));
    git(&work, &["remote", "remove", "origin"]);
    let noise = |tau: f64| Noise { runs: 3, found: at(1), tau: [("tpot.p50".to_owned(), tau)].into() };
    let mut alone = git_shelf(&work);
    alone.save(&kept("a", 1, None)).unwrap();
    alone.save(&kept("b", 2, None)).unwrap();
    alone.save(&kept("old", 0, None)).unwrap();
    alone.save_noise("chat", &the_key(), &noise(0.02)).unwrap();
    git(&work, &["remote", "add", "origin", &world.url()]);
    assert_eq!(ids(&git_shelf(&work)), ["b", "a", "old"], "the remote has no such ref yet");
    assert_eq!(git_shelf(&work).gates().unwrap(), ["chat"]);
    let mut theirs = git_shelf(&other);
    theirs.save(&kept("x", 9, None)).unwrap();
    theirs.save_noise("chat", &the_key(), &noise(0.05)).unwrap();
    let shelf = git_shelf(&work);
    assert_eq!((ids(&shelf).join(" "), shelf.warning()), ("x b a old".to_owned(), None));
    assert_eq!(shelf.noise("chat", &the_key()).unwrap(), Some(noise(0.02)), "ours first");
    assert_eq!(shelf.load("chat", "a").unwrap(), kept("a", 1, None));
    assert_eq!(ids(&git_shelf(&other)), ["x"], "reading pushes nothing");
    assert_eq!(
        git_shelf(&work).prune("chat", 2).unwrap(),
        ["a", "old"],
        "what nobody else has is removed all the same"
    );
    assert_eq!(ids(&git_shelf(&other)), ["x", "b"]);
    // A clone that is only behind has nothing of its own.
    git_shelf(&other).prune("chat", 1).unwrap();
    assert_eq!(ids(&git_shelf(&work)), ["x"]);

    let (world, _) = World::with_main(1);
    git(&world.work(), &["remote", "remove", "origin"]);
    let mut alone = git_shelf(&world.work());
    (0..3).for_each(|minute| alone.save(&kept(&format!("a{minute}"), minute, None)).unwrap());
    git(&world.work(), &["remote", "add", "origin", &world.url()]);
    assert_eq!(git_shelf(&world.work()).prune("chat", 1).unwrap(), ["a1", "a0"]);
    assert_eq!(ids(&git_shelf(&world.clone("other", &[]))), ["a2"]);
}

#[test]
fn a_ref_of_other_things_is_refused_and_left_alone() {
    let (world, main) = World::with_main(1);
    let work = world.work();
    let blob = git(&work, &["hash-object", "-w", "m0.txt"]);
    git(&work, &["tag", "-a", "v1", "-m", "v1", &main[0]]);
    let tag = git(&work, &["rev-parse", "refs/tags/v1"]);
    for (id, words) in [(&blob, "a blob stands there"), (&tag, "a tag stands"), (&main[0], "a commit of other things")]
    {
        let is_refused = |folder: &Path, place: &str| {
            let error = open(REF, folder).unwrap_err();
            assert!(matches!(error, BaselineError::Unusable { .. }), "{error}");
            let error = error.to_string();
            assert!(error.contains(&format!("git:{REF}")) && error.contains(words) && error.contains(place), "{error}");
        };
        git(&work, &["update-ref", REF, id]);
        is_refused(&work, " in this clone");
        git(&work, &["push", "--quiet", "origin", &format!("{id}:{REF}")]);
        is_refused(&work, "");
        git(&work, &["update-ref", "-d", REF]);
        is_refused(&work, " at `origin`");
        assert_eq!(git(&world.path("remote.git"), &["rev-parse", REF]), **id, "{words}");
        git(&world.path("remote.git"), &["update-ref", "-d", REF]);
    }
    // Put there while a shelf is open.
    let mut shelf = git_shelf(&work);
    git(&work, &["push", "--quiet", "origin", &format!("{}:{REF}", main[0])]);
    assert!(matches!(shelf.save(&kept("a", 1, None)), Err(BaselineError::Unusable { .. })));
}

#[test]
fn refs_that_leave_no_room_are_named_at_once() {
    let (world, main) = World::with_main(1);
    let work = world.work();
    for (taken, store) in [(REF.to_owned(), format!("{REF}/sub")), (format!("{REF}/sub"), REF.to_owned())] {
        let is_refused = || {
            let error = open(&store, &work).unwrap_err().to_string();
            assert!(error.contains(&format!("there is a ref `{taken}`, and git cannot have both")), "{error}");
        };
        git(&work, &["update-ref", &taken, &main[0]]);
        is_refused();
        git(&work, &["push", "--quiet", "origin", &taken]);
        git(&work, &["update-ref", "-d", &taken]);
        is_refused();
        git(&world.path("remote.git"), &["update-ref", "-d", &taken]);
        assert!(open(&store, &work).is_ok());
    }
    git(&work, &["update-ref", &format!("{REF}-beside"), &main[0]]);
    assert!(open(REF, &work).is_ok());
}

#[test]
fn the_only_remote_is_used_whatever_its_name_and_of_several_origin() {
    let (world, _) = World::with_main(1);
    let work = world.work();
    git(&work, &["remote", "rename", "origin", "upstream"]);
    git_shelf(&work).save(&kept("aaaa", 1, None)).unwrap();
    assert_eq!(ids(&git_shelf(&world.clone("other", &[]))), ["aaaa"], "it was pushed");

    git(&work, &["remote", "add", "fork", "/nowhere"]);
    let mut shelf = git_shelf(&work);
    assert!(shelf.warning().unwrap().contains("none of the remotes `fork`, `upstream` is `origin`"));
    shelf.save(&kept("bbbb", 2, None)).unwrap();
    assert_eq!(ids(&git_shelf(&world.clone("third", &[]))), ["aaaa"]);
}

#[test]
fn without_a_remote_the_ref_of_the_clone_is_the_store() {
    let (world, main) = World::with_main(1);
    let work = world.work();
    git(&work, &["remote", "remove", "origin"]);
    refuse_by_hooks(&work);
    let mut shelf = git_shelf(&work);
    shelf.save(&kept("a", 1, None)).unwrap();
    git_shelf(&work).save(&kept("b", 2, None)).unwrap();
    shelf.save(&kept("c", 3, None)).unwrap();
    assert_eq!(ids(&git_shelf(&work)), ["c", "b", "a"], "an older view loses nothing");
    assert_eq!(git(&work, &["rev-parse", "HEAD"]), main[0]);
    // A remote that comes later gets what it never had, and keeps what it has.
    let other = world.clone("other", &[]);
    git_shelf(&other).save(&kept("x", 9, None)).unwrap();
    fs::remove_dir_all(work.join(".git/hooks")).unwrap();
    git(&work, &["remote", "add", "origin", &world.url()]);
    let mut shelf = git_shelf(&work);
    shelf.save(&kept("d", 4, None)).unwrap();
    assert_eq!(ids(&shelf), ["x", "d", "c", "b", "a"]);
    // What was pruned elsewhere does not come back with an older clone's save.
    git_shelf(&other).prune("chat", 1).unwrap();
    shelf.save(&kept("e", 5, None)).unwrap();
    assert_eq!(ids(&git_shelf(&other)), ["x", "e"]);
}

#[test]
fn pushers_at_once_lose_nothing() {
    let (world, _) = World::with_main(1);
    let clones: Vec<_> = (0..3).map(|number| world.clone(&format!("clone{number}"), &[])).collect();
    const SAVES: u32 = 8;
    std::thread::scope(|scope| {
        for (number, clone) in clones.iter().enumerate() {
            scope.spawn(move || {
                let mut shelf = git_shelf(clone);
                for minute in 0..SAVES {
                    shelf.save(&kept(&format!("c{number}-{minute}"), minute, None)).unwrap();
                }
            });
        }
    });
    for clone in &clones {
        assert_eq!(ids(&git_shelf(clone)).len(), clones.len() * SAVES as usize);
    }
}

#[test]
fn savers_in_one_clone_lose_nothing() {
    let (world, _) = World::with_main(1);
    git(&world.work(), &["remote", "remove", "origin"]);
    let work = world.work();
    std::thread::scope(|scope| {
        for saver in ["a", "b"] {
            let work = &work;
            scope.spawn(move || {
                let mut shelf = git_shelf(work);
                (0..8).for_each(|minute| shelf.save(&kept(&format!("{saver}{minute}"), minute, None)).unwrap());
            });
        }
    });
    assert_eq!(ids(&git_shelf(&work)).len(), 16);
}

#[test]
fn a_remote_that_does_not_answer_is_said_and_never_saved_to_in_silence() {
    let (world, _) = World::with_main(1);
    let work = world.work();
    git_shelf(&work).save(&kept("a", 1, None)).unwrap();
    git(&work, &["remote", "set-url", "origin", "http://user:s3cret@127.0.0.1:1/x.git"]);
    let mut shelf = git_shelf(&work);
    assert_eq!(ids(&shelf), ["a"], "what the clone has is used");
    let warning = shelf.warning().unwrap().to_owned();
    assert!(warning.contains(REF) && warning.contains("what this clone has"), "{warning}");
    let error = shelf.save(&kept("b", 2, None)).unwrap_err();
    assert!(matches!(error, BaselineError::Remote { .. }), "{error}");
    let said = format!("{warning} {error} {error:?}");
    assert!(said.contains("127.0.0.1") && !said.contains("s3cret"), "{said}");
    git(&work, &["remote", "set-url", "origin", &world.url()]);
    assert_eq!(ids(&git_shelf(&work)), ["a"]);
}

#[cfg(unix)]
#[test]
fn a_remote_that_refuses_is_named_at_once() {
    use std::os::unix::fs::PermissionsExt;
    let (world, _) = World::with_main(1);
    let hook = world.path("remote.git/hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\necho ask https://me:s3cret@h.example >&2\nprintf '1\\n\\n2\\n3\\n' >&2\nexit 1\n")
        .unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let error = git_shelf(&world.work()).save(&kept("a", 1, None)).unwrap_err();
    assert!(matches!(&error, BaselineError::Remote { does: "push", .. }), "{error}");
    let error = error.to_string();
    assert!(error.ends_with("(pre-receive hook declined): ask https://***@h.example; 1; 2"), "{error}");
    assert!(git_command(&world.work(), &["show-ref", "--verify", REF]).output().unwrap().stdout.is_empty());
}

#[test]
fn what_others_put_into_the_ref_is_refused_by_name() {
    let (world, _) = World::with_main(1);
    let work = world.work();
    git_shelf(&work).save(&kept("a", 1, None)).unwrap();
    let folder = format!("chat/{}", &the_key().hash[..12]);
    let blob = {
        fs::write(world.path("bad"), "{").unwrap();
        git(&work, &["hash-object", "-w", world.path("bad").to_str().unwrap()])
    };
    let put = |mode: &str, path: &str| {
        git(&work, &["update-index", "--add", "--cacheinfo", &format!("{mode},{blob},{path}")]);
    };
    git(&work, &["read-tree", REF]);
    put("100644", &format!("{folder}/bad.json"));
    put("120000", &format!("{folder}/link.json"));
    put("100644", &format!("{folder}/deep/er.json"));
    put("100644", "chat/readme");
    let tree = git(&work, &["write-tree"]);
    let commit = git(&work, &["commit-tree", &tree, "-p", REF, "-m", "by hand"]);
    git(&work, &["push", "--quiet", "origin", &format!("{commit}:{REF}")]);
    let listing = git_shelf(&work).list("chat").unwrap();
    assert_eq!(listing.entries.len(), 1);
    let refused: Vec<_> = listing.refused.iter().map(|refused| refused.file.rsplit('/').next().unwrap()).collect();
    assert_eq!(refused, ["bad.json", "er.json", "link.json", "readme"]);
    assert!(listing.refused[0].file.starts_with(&format!("git:{REF}")), "{:?}", listing.refused);
}

#[test]
fn somebody_is_always_the_author() {
    if std::env::var_os(AGAIN).is_none() {
        let nobody = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")];
        again("git_stores::somebody_is_always_the_author", &nobody);
        return;
    }
    let (world, _) = World::with_main(1);
    let author = || git(&world.work(), &["log", "-1", "--format=%an <%ae>: %s", REF]);
    git_shelf(&world.work()).save(&kept("a", 1, None)).unwrap();
    if std::env::var_os("GIT_AUTHOR_NAME").is_none() && std::env::var_os("GIT_AUTHOR_EMAIL").is_none() {
        assert_eq!(author(), "gate <gate@localhost>: chat: keep run a");
        git(&world.work(), &["config", "user.name", "Somebody"]);
        git(&world.work(), &["config", "user.email", "some@body"]);
        git_shelf(&world.work()).save(&kept("b", 2, None)).unwrap();
        assert_eq!(author(), "Somebody <some@body>: chat: keep run b");
    }
}
