//! Baselines that came as an archive, or as the bytes of one file.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use gate_baseline::{Ask, Shelf, Surroundings, choose, is_archive, read_bytes, unpack};
use gate_model::BaselineFrom;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::{World, folder_shelf, ids, kept, noted, repository, spec, the_key};

/// A folder as an archive, deflated, with these folders before each name.
fn zipped(folder: &Path, prefix: &str) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(inside).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{prefix}{}", path.strip_prefix(folder).unwrap().display());
            if path.is_dir() {
                writer.add_directory(name, SimpleFileOptions::default()).unwrap();
                folders.push(path);
            } else {
                writer.start_file(name, SimpleFileOptions::default()).unwrap();
                writer.write_all(&fs::read(&path).unwrap()).unwrap();
            }
        }
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn an_archive_of_a_store_is_the_same_store() {
    let folder = tempfile::tempdir().unwrap();
    let mut saved = folder_shelf(folder.path());
    for (id, minute) in [("a", 1), ("b", 2)] {
        saved.save(&kept(id, minute, None)).unwrap();
    }
    saved.pin("chat", "a").unwrap();
    for (number, prefix) in ["", ".gate/baselines/", "some/where/else/"].iter().enumerate() {
        let bytes = zipped(&folder.path().join(".gate/baselines"), prefix);
        assert!(is_archive(&bytes));
        let into = folder.path().join(number.to_string());
        let shelf = Shelf::open(&unpack(&bytes, "base.zip", &into).unwrap(), Path::new("/")).unwrap();
        assert_eq!(ids(&shelf), ["b", "a"]);
        assert!(shelf.list("chat").unwrap().entries[1].pinned);
        assert_eq!(shelf.load("chat", "b").unwrap(), kept("b", 2, None));
        assert_eq!((shelf.warning(), shelf.gates().unwrap()), (None, vec!["chat".to_owned()]));
    }
}

#[test]
fn a_baseline_is_chosen_from_an_archive_by_the_commit_s_history() {
    let (world, commits) = World::with_main(3);
    let folder = tempfile::tempdir().unwrap();
    let mut saved = folder_shelf(folder.path());
    for (id, minute, commit) in [("old", 1, 0), ("new", 2, 1)] {
        saved.save(&kept(id, minute, Some(noted(&commits[commit], &[])))).unwrap();
    }
    saved.save(&kept("elsewhere", 3, Some(noted(&"e".repeat(40), &[])))).unwrap();
    let bytes = zipped(&folder.path().join(".gate/baselines"), ".gate/baselines/");
    let store = unpack(&bytes, "base.zip", &folder.path().join("unpacked")).unwrap();
    let mut spec = spec();
    spec.baseline.from = BaselineFrom::Branch("main".to_owned());
    let (key, surroundings, work) = (the_key(), Surroundings::default(), world.work());
    let ask = Ask { spec: &spec, key: &key, surroundings: &surroundings, folder: &work, run_id: None };
    let choice = choose(&ask, &Shelf::open(&store, &work).unwrap(), Ok(&repository(&work))).unwrap();
    let used = choice.prior.chosen.unwrap().used;
    assert_eq!(used[0].id, "new");
    assert_eq!(used[0].commit.as_deref(), Some(commits[1].as_str()));
}

#[test]
fn one_file_s_bytes_are_a_baseline() {
    let baseline = kept("a", 1, None);
    let bytes = serde_json::to_vec(&baseline).unwrap();
    assert!(!is_archive(&bytes));
    assert_eq!(read_bytes(bytes, "https://ci.example/base.json").unwrap(), baseline);
    let refused = read_bytes(b"<html>sign in</html>".to_vec(), "https://ci.example/base.json").unwrap_err();
    assert!(refused.to_string().starts_with("use `https://ci.example/base.json`: it is corrupt"), "{refused}");
}
