//! `gate hook`: makes git run `gate check` before a push, and takes that away again.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use gate_model::ExitCode;

use crate::cli::{Hook, HookAction};
use crate::console::Console;
use crate::failure::Failure;
use crate::surroundings;

/// The second line of a hook that gate wrote.
const BEGIN: &str = "# gate:pre-push begin: written by `gate hook install`, taken away by `gate hook remove`";
/// Its last line.
const END: &str = "# gate:pre-push end";
/// The hook: what stands in capitals between `@` is filled in at installation. It is plain POSIX shell.
const SCRIPT: &str = include_str!("hook/pre-push.sh");

pub(crate) fn hook(arguments: &Hook, console: &Console) -> Result<ExitCode, Failure> {
    let place = Place::find()?;
    match arguments.action {
        HookAction::Install => install(&place, console),
        HookAction::Remove => remove(&place, console),
    }
    .map(|()| ExitCode::Passed)
}

/// Where the hook goes.
struct Place {
    hook: PathBuf,
    /// The folder that `gates/` is in, from the root of the checkout; empty where it is the root.
    folder: String,
}

/// What is there now.
enum Found {
    Nothing,
    /// A hook that gate wrote, with its text.
    Ours(String),
    /// Any other file, or ours with something put before or after it.
    Foreign,
}

impl Place {
    fn find() -> Result<Self, Failure> {
        let failed = |error: gate_baseline::BaselineError| Failure::usage(format!("failed to {error}"));
        let repository = surroundings::repository().map_err(|error| match error {
            gate_baseline::BaselineError::NoGit(_) => failed(error),
            _ => {
                Failure::usage("this folder is in no git repository").hint("run it in the one whose pushes are checked")
            }
        })?;
        let (hooks, common) = (repository.hooks().map_err(failed)?, repository.common_folder().map_err(failed)?);
        if ![repository.root(), &common].iter().any(|own| real(&hooks).starts_with(real(own))) {
            let words = format!("git runs the hooks in {}, which is not this repository's own", hooks.display());
            return Err(Failure::usage(words).hint(format!(
                "they run for other repositories too (`core.hooksPath`); add this line to its pre-push yourself: {}",
                by_hand()
            )));
        }
        // The root has the gates unless this folder has some of its own.
        let own = Path::new("gates").is_dir().then(|| repository.relative(Path::new("gates"))).flatten();
        let folder = own.as_deref().and_then(|gates| gates.strip_suffix("/gates")).unwrap_or("").to_owned();
        Ok(Self { hook: hooks.join("pre-push"), folder })
    }

    fn found(&self) -> Result<Found, Failure> {
        let kind = match fs::symlink_metadata(&self.hook) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Found::Nothing);
            }
            Err(error) => return Err(Failure::unreadable(&self.hook, error)),
            Ok(kind) => kind,
        };
        if !kind.is_file() {
            return Ok(Found::Foreign);
        }
        let bytes = fs::read(&self.hook).map_err(|error| Failure::unreadable(&self.hook, error))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let is_ours = text.lines().nth(1) == Some(BEGIN) && text.trim_end().lines().last() == Some(END);
        Ok(if is_ours { Found::Ours(text) } else { Found::Foreign })
    }

    /// The hook's text for this program and folder.
    fn script(&self) -> String {
        // A program that is started by no path of its own is found on PATH, or not at all.
        let program =
            std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned)).unwrap_or_default();
        let folder = if self.folder.is_empty() { "." } else { &self.folder };
        let body = SCRIPT.replace("@PROGRAM@", &quoted(&program)).replace("@FOLDER@", &quoted(folder));
        format!("#!/bin/sh\n{BEGIN}\n{body}{END}\n")
    }
}

fn install(place: &Place, console: &Console) -> Result<(), Failure> {
    let script = place.script();
    match place.found()? {
        Found::Foreign => {
            let words = format!("{} is there already, and not only gate's: it is left as it is", place.hook.display());
            return Err(Failure::usage(words).hint(format!("add this line to it yourself: {}", by_hand())));
        }
        Found::Ours(text) if text == script => {}
        Found::Ours(_) | Found::Nothing => write(&place.hook, &script)?,
    }
    console.people(&format!(
        "{}: `gate check` runs before each push of a branch, on what is checked out.\nA violated gate or a wrong spec stops \
         the push; what could not be measured does not.\nWithout it once: `GATE_SKIP=1 git push`, or `git push \
         --no-verify`. For good: `gate hook remove`.\n",
        place.hook.display()
    ));
    Ok(())
}

fn remove(place: &Place, console: &Console) -> Result<(), Failure> {
    let words = match place.found()? {
        Found::Ours(_) => {
            fs::remove_file(&place.hook).map_err(|error| Failure::unwritable(&place.hook, error))?;
            "removed; pushes are not checked any more"
        }
        Found::Nothing => "there is no such hook; nothing to remove",
        Found::Foreign => "this hook is not only gate's: it is left as it is",
    };
    console.people(&format!("{}: {words}\n", place.hook.display()));
    Ok(())
}

/// Writes the hook whole or not at all, so that it can be run.
fn write(path: &Path, script: &str) -> Result<(), Failure> {
    let unwritable = |error: std::io::Error| Failure { hint: None, ..Failure::unwritable(path, error) };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(unwritable)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(unwritable)?;
    file.write_all(script.as_bytes()).map_err(unwritable)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o755)).map_err(unwritable)?;
    }
    file.persist(path).map(drop).map_err(|error| unwritable(error.error))
}

/// A path with the links in it followed, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let followed = path.ancestors().find_map(|above| {
        let below = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(below))
    });
    followed.unwrap_or_else(|| path.to_path_buf())
}

/// The line that does in another hook what ours does.
fn by_hand() -> String {
    "gate check < /dev/null; case $? in 0 | 3 | 4) ;; *) exit 1 ;; esac".to_owned()
}

/// A word of the shell's that stands for this text.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_path_holds_is_one_word() {
        for text in ["plain", "a b", "it's", "$(touch x)", "`x`", "\\", "a\nb", ""] {
            let output = std::process::Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted(text))).output();
            assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), text);
        }
    }
}
