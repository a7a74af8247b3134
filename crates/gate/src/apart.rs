//! What is read is not written over, and no file is written twice: found out before anything is written.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The files of one call, by what they are to the person.
#[derive(Default)]
pub(crate) struct Apart<'a> {
    kept: Vec<(&'a str, PathBuf)>,
    written: Vec<(&'a str, &'a Path)>,
}

impl<'a> Apart<'a> {
    /// Notes what has to stay as it is, such as `the spec`.
    pub(crate) fn keep(&mut self, what: &'a str, paths: impl IntoIterator<Item = impl Into<PathBuf>>) {
        self.kept.extend(paths.into_iter().map(|path| (what, path.into())));
    }

    /// Notes what a flag writes; `-` is stdout.
    pub(crate) fn write(&mut self, flag: &'a str, path: Option<&'a PathBuf>) {
        self.written.extend(path.map(|path| (flag, path.as_path())));
    }

    /// Notes that a flag writes to stdout.
    pub(crate) fn print(&mut self, flag: &'a str) {
        self.written.push((flag, Path::new("-")));
    }

    /// # Errors
    /// What would be lost, by the flag that would write over it.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        for (at, (flag, path)) in self.written.iter().enumerate() {
            let Some(place) = place(path) else { continue };
            if let Some((what, _)) = self.kept.iter().find(|(_, kept)| self::place(kept).as_ref() == Some(&place)) {
                return Err(
                    Failure::usage(format!("{flag} {} would replace {what}", path.display())).hint("name another file")
                );
            }
            let earlier = self.written.iter().take(at).find(|(_, other)| self::place(other).as_ref() == Some(&place));
            if let Some((other, _)) = earlier {
                return Err(match place {
                    Place::Stdout => Failure::usage(format!("{other} and {flag} would both go to stdout"))
                        .hint("only one report can: give the other a file"),
                    Place::File(_) => Failure::usage(format!("{other} and {flag} would both be {}", path.display()))
                        .hint("give each its own file"),
                });
            }
        }
        Ok(())
    }
}

/// Where bytes end up.
#[derive(PartialEq, Eq)]
enum Place {
    Stdout,
    File(PathBuf),
}

/// Where a path leads, through links and whatever way it is written; `None` of a device or a pipe, which loses nothing.
fn place(path: &Path) -> Option<Place> {
    if path == Path::new("-") {
        return Some(Place::Stdout);
    }
    if let Ok(real) = path.canonicalize() {
        return real.is_file().then_some(Place::File(real));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = folder.canonicalize().ok().zip(path.file_name()).map(|(folder, name)| folder.join(name));
    Some(Place::File(real.or_else(|| std::path::absolute(path).ok())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a call that reads `spec.yaml` and writes these.
    fn said(folder: &Path, written: &[(&str, &str)]) -> String {
        let written: Vec<(&str, PathBuf)> = written
            .iter()
            .map(|(flag, name)| (*flag, if *name == "-" { PathBuf::from("-") } else { folder.join(name) }))
            .collect();
        let mut apart = Apart::default();
        apart.keep("the spec", [folder.join("spec.yaml")]);
        written.iter().for_each(|(flag, path)| apart.write(flag, Some(path)));
        apart
            .check()
            .err()
            .map(|failure| failure.sentence().replace(&folder.display().to_string(), "F"))
            .unwrap_or_default()
    }

    #[test]
    fn nothing_is_lost_unsaid() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::write(folder.join("spec.yaml"), "").unwrap();
        std::fs::create_dir(folder.join("deep")).unwrap();
        for (written, words) in [
            (&[("--html", "spec.yaml")][..], "--html F/spec.yaml would replace the spec: name another file"),
            (
                &[("--html", "deep/../spec.yaml")],
                "--html F/deep/../spec.yaml would replace the spec: name another file",
            ),
            (
                &[("--html", "a"), ("--csv", "deep/../a")],
                "--html and --csv would both be F/deep/../a: give each its own file",
            ),
            (
                &[("--html", "new/a"), ("--csv", "new/a")],
                "--html and --csv would both be F/new/a: give each its own file",
            ),
            (
                &[("--html", "-"), ("--csv", "-")],
                "--html and --csv would both go to stdout: only one report can: give the other a file",
            ),
            (&[("--html", "-"), ("--csv", "a"), ("--junit", "b")], ""),
        ] {
            assert_eq!(said(folder, written), words);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_what_it_names_and_a_device_takes_all() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::write(folder.join("spec.yaml"), "").unwrap();
        std::os::unix::fs::symlink(folder.join("spec.yaml"), folder.join("link")).unwrap();
        assert!(said(folder, &[("--html", "link")]).contains("would replace the spec"));
        std::os::unix::fs::symlink("/dev/null", folder.join("null")).unwrap();
        assert_eq!(said(folder, &[("--html", "null"), ("--csv", "null")]), "");
    }
}
