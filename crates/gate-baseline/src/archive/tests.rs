use std::io::Write;
use std::path::PathBuf;

use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;

const OURS: &str = "chat/0123456789ab/a.json";

fn stored() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Stored)
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, stored()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The bytes with one text for another of the same length, such as a name that no writer writes.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let found: Vec<usize> = memmem::find_iter(&bytes, from).collect();
    assert_eq!(found.len(), 2, "once at the file and once in the directory");
    found.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to.as_bytes()));
    bytes
}

/// Unpacks into a folder in a folder of its own; what became of it, and all files that are there afterwards.
fn unpacked(limits: Limits, bytes: &[u8]) -> (Result<BaselineStore, String>, Vec<String>) {
    let outer = TempDir::new().unwrap();
    let into = outer.path().join("in/to");
    let store = unpack_within(limits, bytes, "base.zip", &into).map_err(|error| error.to_string());
    if let Ok(store) = &store {
        assert_eq!(*store, BaselineStore::Folder(into.to_str().unwrap().to_owned()));
    }
    let mut files = Vec::new();
    collect(outer.path(), &mut files);
    let own = |path: PathBuf| path.strip_prefix(&into).unwrap_or(&path).to_str().unwrap().to_owned();
    let mut files: Vec<String> = files.into_iter().map(own).collect();
    files.sort();
    (store, files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

#[track_caller]
fn check_refused(limits: Limits, bytes: &[u8], why: &str) {
    let (store, files) = unpacked(limits, bytes);
    let refused = store.unwrap_err();
    assert!(refused.starts_with("use `base.zip`: ") && refused.contains(why), "{refused}");
    assert_eq!(files, [""; 0], "{refused}");
}

#[test]
fn only_files_of_a_store_are_unpacked() {
    let bytes = archive(&[
        ("report.md", b"# Passed"),
        (".gate/baselines/chat/0123456789ab/a.json", b"{}"),
        (".gate/baselines/chat/0123456789ab/a.pin", b""),
        (".gate/baselines/chat/0123456789ab/noise.json", b"{}"),
        (".gate/baselines/chat/0123456789ab/.gate-x", b"half"),
        (".gate/baselines/chat/0123456789ab/a.sh", b"#!/bin/sh"),
        (".gate/baselines/chat/short/a.json", b"{}"),
        (".gate/baselines/-rf/0123456789ab/a.json", b"{}"),
        ("0123456789ab/a.json", b"{}"),
    ]);
    let (store, files) = unpacked(LIMITS, &bytes);
    assert!(store.is_ok(), "{store:?}");
    assert_eq!(files, [OURS, "chat/0123456789ab/a.pin", "chat/0123456789ab/noise.json"]);
    assert!(is_archive(&bytes) && !is_archive(b"{\"schema\": 1}") && !is_archive(b"PK"));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let harmless = "aa/bb/chat/0123456789ab/a.json";
    let bytes = archive(&[(harmless, b"{}")]);
    assert_eq!(unpacked(LIMITS, &bytes).1, [OURS]);
    for name in [
        "../bb/chat/0123456789ab/a.json",
        "aa/../chat/0123456789ab/a.json",
        "..\\bb\\chat\\0123456789ab\\a.jsn",
        "/a/bb/chat/0123456789ab/a.json",
        "\\a/bb/chat/0123456789ab/a.json",
        "C:/bb/chat/0123456789ab/a.json",
    ] {
        check_refused(LIMITS, &replaced(&bytes, harmless, &format!("{name:_<30}")), "leads out of it");
    }
    let not_text = {
        let mut bytes = bytes.clone();
        let found: Vec<usize> = memmem::find_iter(&bytes, harmless).collect();
        found.into_iter().for_each(|at| bytes[at] = 0xff);
        bytes
    };
    check_refused(LIMITS, &not_text, "holds no baselines");
}

#[test]
fn links_and_locked_files_are_not_followed_or_opened() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink(OURS, "/etc/passwd", stored()).unwrap();
    check_refused(LIMITS, &writer.finish().unwrap().into_inner(), "holds no baselines");

    let mut locked = archive(&[(OURS, b"{}")]);
    let directory = memmem::find(&locked, ENTRY).unwrap();
    locked[6] |= 1;
    locked[directory + 8] |= 1;
    check_refused(LIMITS, &locked, "locked with a password");
}

#[test]
fn one_baseline_in_two_folders_is_refused() {
    let bytes = archive(&[("one/chat/0123456789ab/a.json", b"{}"), ("two/chat/0123456789ab/a.json", b"[]")]);
    let (store, files) = unpacked(LIMITS, &bytes);
    assert!(store.unwrap_err().contains("holds `chat/0123456789ab/a.json` twice"));
    assert_eq!(files, [OURS]);
}

#[test]
fn bombs_do_not_go_off() {
    let limits = Limits { entries: 4, file: 3 << 20, total: 4 << 20 };
    let zeros = |sizes: &[usize]| {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (number, size) in sizes.iter().enumerate() {
            let deflated = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
            writer.start_file(format!("chat/0123456789ab/{number}.json"), deflated).unwrap();
            writer.write_all(&vec![0; *size]).unwrap();
        }
        writer.finish().unwrap().into_inner()
    };
    let fits = zeros(&[3 << 20, 1 << 20]);
    assert!(fits.len() < 8192 && unpacked(limits, &fits).0.is_ok());
    check_refused(limits, &zeros(&[(3 << 20) + 1]), "more than 3 MiB in a file, or 4 MiB in all");
    assert!(unpacked(limits, &zeros(&[3 << 20, (1 << 20) + 1])).0.unwrap_err().contains("4 MiB in all"));
    // What the directory says of a size is not believed.
    let mut lying = zeros(&[(3 << 20) + 1]);
    let directory = memmem::find(&lying, ENTRY).unwrap();
    lying[directory + 24..directory + 28].copy_from_slice(&2_u32.to_le_bytes());
    assert!(unpacked(limits, &lying).0.is_err());
    assert!(unpacked(limits, &zeros(&[1; 4])).0.is_ok());
    check_refused(limits, &zeros(&[1; 5]), "more than 4 files");
    let many: Vec<String> = (0..=LIMITS.entries).map(|number| format!("{number}")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b""[..])).collect();
    check_refused(LIMITS, &archive(&many), "more than 10000 files");
}

#[test]
fn a_damaged_archive_is_refused() {
    let bytes = archive(&[(OURS, b"{\"schema\": 1}")]);
    check_refused(LIMITS, &bytes[..bytes.len() - 30], "damaged");
    check_refused(LIMITS, b"PK\x03\x04", "damaged");
    check_refused(LIMITS, &archive(&[]), "holds no baselines");
    let mut changed = bytes.clone();
    let at = memmem::find(&changed, b"schema").unwrap();
    changed[at] ^= 1;
    check_refused(LIMITS, &changed, "damaged");
}

#[test]
fn whatever_byte_is_changed_nothing_panics_and_no_other_file_appears() {
    let bytes = archive(&[(OURS, b"{}")]);
    for at in 0..bytes.len() {
        for flip in [1, 0x80] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            let (_, files) = unpacked(LIMITS, &bytes);
            assert!(files.iter().all(|file| is_ours(file)), "{files:?}");
        }
    }
}

#[test]
fn a_folder_that_holds_something_is_left_alone() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("x"), "mine").unwrap();
    let bytes = archive(&[(OURS, b"{}")]);
    let refused = unpack(&bytes, "base.zip", folder.path()).unwrap_err().to_string();
    assert!(refused.contains("not empty"), "{refused}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(unpack(&bytes, "base.zip", &folder.path().join("x")).is_err());
}
