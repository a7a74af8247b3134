//! Baselines in a folder.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use gate_baseline::{BaselineError, Shelf};
use gate_model::{BASELINE_SCHEMA, BaselineKey, BaselineStore, Noise};

use crate::support::{World, at, folder_shelf, ids, keep, kept, run_of, spec, the_key};

fn store(folder: &Path) -> std::path::PathBuf {
    folder.join(".gate/baselines")
}

fn key_folder(folder: &Path) -> std::path::PathBuf {
    store(folder).join("chat").join(&the_key().hash[..12])
}

#[test]
fn what_is_saved_is_listed_newest_first_and_loaded_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    assert!(ids(&shelf).is_empty(), "a folder that is not there is an empty store");
    for (id, minute) in [("b", 2), ("c", 3), ("a", 1)] {
        shelf.save(&kept(id, minute, None)).unwrap();
    }
    shelf.save(&kept("b", 2, None)).unwrap();
    assert_eq!(ids(&shelf), ["c", "b", "a"]);
    assert_eq!(shelf.load("chat", "b").unwrap(), kept("b", 2, None));
    let entry = &shelf.list("chat").unwrap().entries[0];
    assert_eq!((entry.requests, entry.ok, entry.started.as_str(), entry.pinned), (20, 20, at(3).as_str(), false));
    assert_eq!((entry.hash.clone(), entry.tokens.as_deref()), (the_key().hash, Some(r#"["usage"]"#)));
    assert_eq!(shelf.gates().unwrap(), ["chat"]);
    assert!(matches!(shelf.load("chat", "z"), Err(BaselineError::NoSuchId { .. })));
    assert!(shelf.list("other").unwrap().entries.is_empty());
    assert_eq!(fs::read_dir(key_folder(folder.path())).unwrap().count(), 3, "nothing half-written is left");
}

#[test]
fn a_restored_folder_is_the_same_store() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    folder_shelf(first.path()).save(&kept("a", 1, None)).unwrap();
    fs::rename(store(first.path()), second.path().join("artifact")).unwrap();
    let shelf = Shelf::open(&BaselineStore::Folder("artifact".to_owned()), second.path()).unwrap();
    assert_eq!(ids(&shelf), ["a"]);
}

#[test]
fn times_are_compared_as_times() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    for (id, started) in [
        ("whole", "2026-11-01T00:00:01Z"),
        ("fraction", "2026-11-01T00:00:01.5Z"),
        ("west", "2026-10-31T23:00:02-01:00"),
    ] {
        shelf.save(&keep(&run_of(&spec(), id, started, None))).unwrap();
    }
    assert_eq!(ids(&shelf), ["west", "fraction", "whole"]);
    let timeless = keep(&run_of(&spec(), "r", "yesterday", None));
    assert!(shelf.save(&timeless).unwrap_err().to_string().contains("`yesterday`, which is no time"));
}

#[test]
fn files_that_are_none_are_refused_by_name_and_others_still_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    shelf.save(&kept("good", 1, None)).unwrap();
    let keys = key_folder(folder.path());
    let text = fs::read_to_string(keys.join("good.json")).unwrap();
    let put = |name: &str, text: &str| fs::write(keys.join(name), text).unwrap();
    put("cut.json", &text[..text.len() / 2]);
    put("empty.json", "");
    put("foreign.json", r#"{"hello": 1}"#);
    put("renamed.json", &text);
    put("later.json", &text.replacen(&format!("\"schema\":{BASELINE_SCHEMA}"), "\"schema\":99", 1));
    put("other.json", &text.replace("\"good\"", "\"other\"").replace("\"chat\"", "\"chit\""));
    put("changed.json", &text.replace("\"good\"", "\"changed\"").replacen("\\\"rate\\\":2.0", "\\\"rate\\\":3.0", 1));
    put("notes.txt", "hello");
    put(".gate-half", "half");
    put(".DS_Store", "");
    fs::write(store(folder.path()).join("chat/stray"), "").unwrap();
    fs::create_dir(store(folder.path()).join("chat/not-a-key")).unwrap();
    fs::write(store(folder.path()).join("chat/not-a-key/x.json"), "").unwrap();
    fs::create_dir(store(folder.path()).join("chat/000000000000")).unwrap();
    fs::write(store(folder.path()).join("chat/000000000000/good.json"), &text).unwrap();
    fs::create_dir(store(folder.path()).join("chat/ffffffffffff")).unwrap();
    fs::write(store(folder.path()).join("chat/ffffffffffff/good.json"), &text).unwrap();
    fs::File::create(keys.join("huge.json")).unwrap().set_len((256 << 20) + 1).unwrap();
    fs::create_dir(keys.join("folder.json")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/dev/zero", keys.join("link.json")).unwrap();

    let listing = shelf.list("chat").unwrap();
    assert_eq!(listing.entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["good"]);
    let why = |file: &str| {
        let mut found = listing.refused.iter().filter(|refused| refused.file.ends_with(file));
        found.next().unwrap_or_else(|| panic!("{file} is not refused: {:?}", listing.refused)).why.clone()
    };
    for (file, words) in [
        ("cut.json", "it is corrupt"),
        ("empty.json", "it is corrupt"),
        ("/foreign.json", "was not made by gate"),
        ("renamed.json", "it is of run good"),
        ("later.json", "it has schema 99, and this gate reads up to 1"),
        ("other.json", "it is of gate `chit`"),
        ("changed.json", "its key was changed"),
        ("notes.txt", "no file of a baseline store"),
        ("chat/stray", "no folder of a key"),
        ("not-a-key/x.json", "no file of a baseline store"),
        ("ffffffffffff/good.json", "in the folder of ffffffffffff"),
        ("huge.json", "larger than 256 MiB"),
        ("folder.json", "no plain file"),
    ] {
        assert!(why(file).contains(words), "{file}: {}", why(file));
    }
    if cfg!(unix) {
        assert!(why("link.json").contains("no plain file"));
    }
    assert!(!listing.refused.iter().any(|refused| refused.file.contains("/.")));
    assert_eq!(shelf.load("chat", "good").unwrap(), kept("good", 1, None), "whatever else has its name");
    let error = shelf.load("chat", "cut").unwrap_err().to_string();
    assert!(error.contains(".gate/baselines/chat/") && error.contains("cut.json"), "{error}");
}

#[test]
fn samples_that_cannot_be_are_refused_when_they_are_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    let mut bad = kept("bad", 1, None);
    bad.run.samples[0].first_token = Some(gate_model::Nanos(-1));
    assert!(shelf.save(&bad).unwrap_err().to_string().contains("its run cannot be: line 2"));
    let text = serde_json::to_string(&bad).unwrap();
    fs::create_dir_all(key_folder(folder.path())).unwrap();
    fs::write(key_folder(folder.path()).join("bad.json"), text).unwrap();
    assert!(matches!(shelf.load("chat", "bad"), Err(BaselineError::Refused(_))));
}

#[test]
fn no_name_leads_out_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    for name in ["..", "../chat", "/etc", "baselines", "-x", ""] {
        assert!(shelf.list(name).is_err() && shelf.load(name, "a").is_err(), "{name}");
        assert!(shelf.prune(name, 1).is_err() && shelf.pin(name, "a").is_err(), "{name}");
    }
    for id in ["..", "../a", "a/b", "noise", "-x", ""] {
        assert!(matches!(shelf.load("chat", id), Err(BaselineError::Unusable { .. })), "{id}");
        assert!(shelf.save(&keep_as(id)).is_err(), "{id}");
    }
    let mut odd = kept("a", 1, None);
    odd.key.hash = "../../../../up".to_owned();
    assert!(shelf.save(&odd).is_err());
    assert!(!store(folder.path()).exists());
}

fn keep_as(id: &str) -> gate_model::Baseline {
    let mut baseline = kept("a", 1, None);
    baseline.run.header.run_id = id.to_owned();
    baseline
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir_all(store(folder.path())).unwrap();
    std::os::unix::fs::symlink(outside.path(), store(folder.path()).join("chat")).unwrap();
    let mut shelf = folder_shelf(folder.path());
    let error = shelf.save(&kept("a", 1, None)).unwrap_err().to_string();
    assert!(error.contains("is a link"), "{error}");
    let listing = shelf.list("chat").unwrap();
    assert!(listing.entries.is_empty() && listing.refused[0].why == "it is a link", "{:?}", listing.refused);
}

#[test]
fn prune_keeps_the_newest_of_each_key_and_what_is_pinned() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    let mut other = spec();
    other.load.warmup = 9;
    for minute in 0..5 {
        shelf.save(&kept(&format!("a{minute}"), minute, None)).unwrap();
    }
    for minute in 0..3 {
        shelf.save(&keep(&run_of(&other, &format!("b{minute}"), &at(minute), None))).unwrap();
    }
    fs::write(key_folder(folder.path()).join("bad.json"), "").unwrap();
    shelf.pin("chat", "a0").unwrap();
    assert!(matches!(shelf.pin("chat", "zz"), Err(BaselineError::NoSuchId { .. })));
    assert_eq!(shelf.prune("chat", 2).unwrap(), ["a2", "a1", "b0"]);
    let listing = shelf.list("chat").unwrap();
    let left: Vec<_> = listing.entries.iter().map(|entry| (entry.id.as_str(), entry.pinned)).collect();
    assert_eq!(left, [("a4", false), ("a3", false), ("b2", false), ("b1", false), ("a0", true)]);
    assert!(key_folder(folder.path()).join("bad.json").exists(), "what is not ours is left alone");
    assert!(shelf.prune("chat", 2).unwrap().is_empty());
}

#[test]
fn what_cannot_be_used_is_neither_counted_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    (1..4).for_each(|minute| shelf.save(&kept(&format!("a{minute}"), minute, None)).unwrap());
    // JSON of the right form, whose newest run lost its samples.
    let mut damaged = kept("a3", 3, None);
    damaged.run.samples.clear();
    fs::write(key_folder(folder.path()).join("a3.json"), serde_json::to_string(&damaged).unwrap()).unwrap();
    let listing = shelf.list("chat").unwrap();
    assert_eq!(listing.entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["a2", "a1"]);
    assert!(listing.entries.iter().all(|entry| shelf.load("chat", &entry.id).is_ok()), "what is listed can be used");
    let [refused] = &listing.refused[..] else { panic!("{:?}", listing.refused) };
    assert!(refused.file.ends_with("a3.json") && refused.why.contains("0 are recorded"), "{refused}");
    assert_eq!(shelf.prune("chat", 1).unwrap(), ["a1"]);
    assert_eq!(shelf.list("chat").unwrap().entries[0].id, "a2");
    assert!(key_folder(folder.path()).join("a3.json").exists());
}

#[test]
fn a_pin_is_set_and_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    (1..4).for_each(|minute| shelf.save(&kept(&format!("a{minute}"), minute, None)).unwrap());
    shelf.pin("chat", "a1").unwrap();
    assert_eq!(shelf.prune("chat", 1).unwrap(), ["a2"]);
    shelf.unpin("chat", "a1").unwrap();
    shelf.unpin("chat", "a3").unwrap();
    assert!(matches!(shelf.unpin("chat", "zz"), Err(BaselineError::NoSuchId { .. })));
    assert_eq!(shelf.prune("chat", 1).unwrap(), ["a1"]);
    assert_eq!(ids(&shelf), ["a3"]);
}

#[test]
fn whoever_pins_while_another_prunes_keeps_the_baseline() {
    for round in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let mut shelf = folder_shelf(folder.path());
        (1..6).for_each(|minute| shelf.save(&kept(&format!("a{minute}"), minute, None)).unwrap());
        let is_pinned = std::thread::scope(|scope| {
            scope.spawn(|| folder_shelf(folder.path()).prune("chat", 1).unwrap());
            folder_shelf(folder.path()).pin("chat", "a1").is_ok()
        });
        assert_eq!(ids(&shelf).contains(&"a1".to_owned()), is_pinned, "round {round}");
    }
}

#[test]
fn a_folder_of_other_things_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &str| Shelf::open(&BaselineStore::Folder(path.to_owned()), folder.path());
    fs::create_dir_all(folder.path().join("empty")).unwrap();
    fs::write(folder.path().join("empty/.gitkeep"), "").unwrap();
    for path in ["none", "empty"] {
        assert_eq!(open(path).unwrap().warning(), None, "{path}");
    }
    folder_shelf(folder.path()).save(&kept("a", 1, None)).unwrap();
    assert_eq!(open(".gate/baselines").unwrap().warning(), None);
    let mut shelf = open(".gate").unwrap();
    let warning = shelf.warning().unwrap().to_owned();
    assert!(warning.contains("`.gate` holds other things and no baselines"), "{warning}");
    assert!(ids(&shelf).is_empty());
    shelf.save(&kept("b", 2, None)).unwrap();
    assert_eq!(open(".gate").unwrap().warning(), None, "now it holds some");
}

#[test]
fn what_is_no_folder_is_no_store() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let mut cases = vec![("file", "it is no folder"), ("file/below", "it is below a file")];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        cases.push(("link", "it is a link that leads nowhere"));
    }
    for (path, words) in cases {
        let error = Shelf::open(&BaselineStore::Folder(path.to_owned()), folder.path()).unwrap_err().to_string();
        assert!(error.contains(path) && error.contains(words) && error.contains("name a folder"), "{error}");
    }
}

#[test]
fn a_store_at_the_root_of_the_repository_is_told_in_a_folder_below() {
    let (world, _) = World::with_main(1);
    let below = world.work().join("services/chat");
    fs::create_dir_all(&below).unwrap();
    assert_eq!(folder_shelf(&below).warning(), None);
    folder_shelf(&world.work()).save(&kept("a", 1, None)).unwrap();
    assert_eq!(folder_shelf(&world.work()).warning(), None);
    let shelf = folder_shelf(&below);
    let warning = shelf.warning().unwrap();
    let root = world.work().canonicalize().unwrap();
    assert!(warning.contains("is not in this folder") && warning.contains(root.to_str().unwrap()), "{warning}");
    folder_shelf(&below).save(&kept("b", 2, None)).unwrap();
    assert_eq!(folder_shelf(&below).warning(), None, "it has a store of its own");
}

#[test]
fn noise_is_kept_beside_the_runs_of_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    let key = the_key();
    assert_eq!(shelf.noise("chat", &key).unwrap(), None);
    let noise = Noise { runs: 8, found: at(1), tau: [("ttft.p50".to_owned(), 0.03)].into() };
    shelf.save_noise("chat", &key, &noise).unwrap();
    shelf.save(&kept("a", 1, None)).unwrap();
    assert_eq!(shelf.noise("chat", &key).unwrap(), Some(noise.clone()));
    assert_eq!(ids(&shelf), ["a"]);
    let other = BaselineKey { hash: "0".repeat(64), ..BaselineKey::default() };
    assert_eq!(shelf.noise("chat", &other).unwrap(), None);
    let odd = Noise { tau: [("ttft.p50".to_owned(), -0.1)].into(), ..noise };
    assert!(shelf.save_noise("chat", &key, &odd).unwrap_err().to_string().contains("`ttft.p50` cannot be -0.1"));
    fs::write(key_folder(folder.path()).join("noise.json"), "{").unwrap();
    assert!(shelf.noise("chat", &key).unwrap_err().to_string().contains("noise.json"));
}

#[test]
fn a_reader_never_sees_half_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut shelf = folder_shelf(folder.path());
            for round in 0..200 {
                shelf.save(&kept(&format!("r{}", round % 3), round % 7, None)).unwrap();
            }
            ended.store(true, Ordering::Release);
        });
        let shelf = folder_shelf(folder.path());
        let mut seen = 0;
        while !ended.load(Ordering::Acquire) || seen == 0 {
            seen += ids(&shelf).len();
        }
    });
    assert_eq!(ids(&folder_shelf(folder.path())).len(), 3);
}

#[test]
fn no_damage_to_a_file_is_more_than_a_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    shelf.save(&kept("a", 1, None)).unwrap();
    let path = key_folder(folder.path()).join("a.json");
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len() - 2).step_by(23) {
        fs::write(&path, &whole[..at]).unwrap();
        assert_eq!(shelf.list("chat").unwrap().refused.len(), 1, "cut after {at} bytes");
        let mut damaged = whole.clone();
        damaged[at] = damaged[at].wrapping_add(1);
        fs::write(&path, damaged).unwrap();
        // A number that became another is read as that; everything else is refused.
        let _ = (shelf.list("chat").unwrap(), shelf.load("chat", "a"));
    }
}

#[test]
fn a_secret_that_was_taken_out_of_the_prompts_costs_no_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    let mut told = spec();
    told.prompts.system = Some("the password is hunter22".to_owned());
    let mut baseline = keep(&run_of(&told, "a", &at(1), None));
    let hash = baseline.key.hash.clone();
    baseline.run.header.spec.prompts.system = Some("the password is ***".to_owned());
    baseline.key.parts.insert("prompts.system".to_owned(), "\"the password is ***\"".to_owned());
    shelf.save(&baseline).unwrap();
    assert_eq!(shelf.list("chat").unwrap().entries[0].hash, hash);
}
