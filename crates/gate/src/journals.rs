//! Journals as files: written in parts of bounded size, read line by line.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use gate_model::{JournalError, JournalReader, LastLine, Run, Verdict};

use crate::failure::Failure;
use crate::files;

/// How large a part may become before the next one begins.
const PART: u64 = 256 << 20;
/// The longest line that is read: far longer than any that is written.
const LINE: u64 = 64 << 20;

/// The name of a journal's part: `run.jsonl`, then `run.part-2.jsonl`.
fn part(journal: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return journal.to_path_buf();
    }
    let extension = journal.extension().map(|extension| format!(".{}", extension.display())).unwrap_or_default();
    let stem = journal.file_stem().unwrap_or_default();
    journal.with_file_name(format!("{}.part-{number}{extension}", stem.display()))
}

/// The parts of a journal that are there beside its first one, in order.
fn further_parts(journal: &Path) -> impl Iterator<Item = PathBuf> {
    (2..).map(move |number| part(journal, number)).take_while(|path| path.is_file())
}

/// A journal that is being written, one line a write: where a part is full the next one begins.
pub(crate) struct JournalFile {
    journal: PathBuf,
    parts: u32,
    out: BufWriter<File>,
    /// Bytes in the part that is written.
    written: u64,
    most: u64,
}

impl JournalFile {
    /// Opens a journal for this run alone: two runs that wrote into one would leave neither. What an earlier run left of
    /// the same name is gone.
    pub(crate) fn create(journal: &Path) -> Result<Self, Failure> {
        if let Some(folder) = journal.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            files::make_folder(folder)?;
        }
        let file = own(journal)?;
        for old in further_parts(journal) {
            std::fs::remove_file(&old).map_err(|error| Failure::unwritable(&old, error))?;
        }
        Ok(Self { journal: journal.to_path_buf(), parts: 1, out: BufWriter::new(file), written: 0, most: PART })
    }

    /// Its files, in order.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        (1..=self.parts).map(|number| part(&self.journal, number)).collect()
    }

    fn turn_over(&mut self) -> std::io::Result<()> {
        self.out.flush()?;
        self.parts += 1;
        self.out = BufWriter::new(File::create(part(&self.journal, self.parts))?);
        self.written = 0;
        Ok(())
    }
}

impl Write for JournalFile {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        if self.written >= self.most && line.ends_with(b"\n") {
            self.turn_over()?;
        }
        self.out.write_all(line)?;
        self.written += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// Opens a file that no other run writes, and empties it.
fn own(journal: &Path) -> Result<File, Failure> {
    let unwritable = |error: std::io::Error| Failure::unwritable(journal, error);
    // What is there is lost only once it is known to be nobody's.
    let file = File::options().write(true).create(true).truncate(false).open(journal).map_err(unwritable)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            return Err(Failure::usage(format!("{}: another gate is writing this journal", journal.display()))
                .hint("wait until it has ended, or give each its own folder with --out"));
        }
        // Some file systems know no locks.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    if file.metadata().is_ok_and(|facts| facts.is_file()) {
        file.set_len(0).map_err(unwritable)?;
    }
    Ok(file)
}

/// Reads one run: a journal with its further parts, of one section or of several.
pub(crate) fn read(journal: &Path) -> Result<Run, Failure> {
    let runs = read_parts(&with_further_parts(&[journal.to_path_buf()]))?;
    Run::assemble(runs).map_err(|error| Failure::unreadable(journal, error))
}

/// Reads a run from all journals of its shards, and puts it together.
pub(crate) fn read_all(journals: &[PathBuf]) -> Result<Run, Failure> {
    let [journal] = journals else {
        let mut groups: Vec<Vec<PathBuf>> = Vec::new();
        for path in with_further_parts(journals) {
            match groups.last_mut() {
                Some(group) if !begins(&path)? => group.push(path),
                _ => groups.push(vec![path]),
            }
        }
        // Each file is decoded on its own: the machine's cores share them.
        let runs = std::thread::scope(|threads| {
            let readers: Vec<_> = groups.iter().map(|group| threads.spawn(|| read_parts(group))).collect();
            let read = readers
                .into_iter()
                .map(|reader| reader.join().unwrap_or_else(|_| Err(Failure::internal("a journal could not be read"))));
            read.collect::<Result<Vec<_>, _>>()
        })?;
        return Run::assemble(runs.into_iter().flatten().collect()).map_err(|error| {
            Failure::usage(format!("these journals are not one run: {error}"))
                .hint("name the journals of all shards of one `gate run --shard I/N`, and nothing else")
        });
    };
    read(journal)
}

/// The run of the journals a verdict names, if they are still those it was made from.
pub(crate) fn of_verdict(verdict_path: &Path, verdict: &Verdict) -> Result<Run, Failure> {
    if verdict.journals.is_empty() {
        return Err(Failure::usage(format!("{} names no journal to take requests from", verdict_path.display())));
    }
    let paths: Vec<PathBuf> = named_by(verdict_path, verdict).collect();
    for (path, reference) in paths.iter().zip(&verdict.journals) {
        // A verdict may be a stranger's, and what it names anything: a pipe that nobody writes, a device without end.
        if std::fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
            return Err(Failure::unreadable(path, "it is no file"));
        }
        if files::digest(path)? != reference.sha256 {
            return Err(Failure::unreadable(path, "it has changed since the verdict was made"));
        }
    }
    // The hint of whoever names a journal is of no use here.
    read_all(&paths).map_err(|failure| match begins(paths.first().map_or(Path::new(""), PathBuf::as_path)) {
        Ok(true) => failure.hint("requests of another tool's file are in what `gate judge --from … --html F` writes"),
        _ => failure,
    })
}

/// The files that a verdict says it was made from.
pub(crate) fn named_by(verdict_path: &Path, verdict: &Verdict) -> impl Iterator<Item = PathBuf> {
    let folder = verdict_path.parent().unwrap_or(Path::new("")).to_path_buf();
    verdict.journals.iter().map(move |reference| folder.join(&reference.path))
}

/// All files of some journals, in order: those that are named, and further parts beside them.
pub(crate) fn with_further_parts(journals: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for journal in journals {
        if !all.contains(journal) {
            all.push(journal.clone());
        }
        for further in further_parts(journal) {
            if !all.contains(&further) && !journals.contains(&further) {
                all.push(further);
            }
        }
    }
    all
}

/// Whether a file begins with a header, and so does not go on where the one before it ends.
fn begins(path: &Path) -> Result<bool, Failure> {
    let unreadable = |error: std::io::Error| Failure::unreadable(path, error);
    let mut start = Vec::new();
    File::open(path).map_err(unreadable)?.take(64).read_to_end(&mut start).map_err(unreadable)?;
    Ok(!start.starts_with(b"{\"type\":\"sample\"") && !start.starts_with(b"{\"type\":\"end\""))
}

/// Reads the parts of one journal.
fn read_parts(parts: &[PathBuf]) -> Result<Vec<Run>, Failure> {
    let mut reader = JournalReader::new();
    let mut last_line = LastLine::Whole;
    let mut first = true;
    for path in parts {
        let file = File::open(path).map_err(|error| Failure::unreadable(path, error))?;
        if file.metadata().is_ok_and(|facts| facts.is_dir()) {
            return Err(Failure::unreadable(path, "it is a folder"));
        }
        last_line = feed(file, &mut reader).map_err(|why| unreadable(path, why, first))?;
        first = false;
    }
    let path = parts.last().cloned().unwrap_or_default();
    reader.finish(last_line).map_err(|error| unreadable(&path, error.to_string(), true))
}

fn unreadable(path: &Path, why: String, first: bool) -> Failure {
    let failure = Failure::unreadable(path, why);
    match first {
        true => failure.hint("gate judge reads the run.jsonl of a check or a run; for another tool's file add --from"),
        false => failure,
    }
}

/// Gives every line of a file to the reader; says whether the last one is whole.
fn feed(file: File, reader: &mut JournalReader) -> Result<LastLine, String> {
    let mut input = BufReader::with_capacity(1 << 18, file);
    let (mut line, mut number) = (Vec::new(), 0_usize);
    let mut last_line = LastLine::Whole;
    loop {
        line.clear();
        let read = input.by_ref().take(LINE).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if read == 0 {
            return Ok(last_line);
        }
        number += 1;
        last_line = if line.ends_with(b"\n") { LastLine::Whole } else { LastLine::Open };
        if last_line == LastLine::Open && line.len() as u64 == LINE {
            return Err(format!("line {number} is longer than {} MiB", LINE >> 20));
        }
        let text = std::str::from_utf8(&line).map_err(|_| format!("line {number} is not UTF-8"))?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        reader.line(text).map_err(|error: JournalError| error.to_string())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_part_is_followed_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("run.jsonl");
        std::fs::write(folder.path().join("run.part-2.jsonl"), "old").unwrap();
        let mut file = JournalFile::create(&journal).unwrap();
        assert!(!folder.path().join("run.part-2.jsonl").exists());
        file.most = 10;
        for line in ["12345678\n", "abcdefgh\n", "x\n"] {
            file.write_all(line.as_bytes()).unwrap();
        }
        file.flush().unwrap();
        let names: Vec<_> = file.files();
        assert_eq!(names, [journal.clone(), folder.path().join("run.part-2.jsonl")]);
        assert_eq!(std::fs::read_to_string(&names[0]).unwrap(), "12345678\nabcdefgh\n");
        assert_eq!(std::fs::read_to_string(&names[1]).unwrap(), "x\n");
        assert_eq!(with_further_parts(&[journal]), names);
    }

    #[test]
    fn a_journal_belongs_to_one_run() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("deep/run.jsonl");
        let _held = JournalFile::create(&journal).unwrap();
        let refused = JournalFile::create(&journal).err().unwrap();
        assert!(refused.message.contains("another gate is writing"), "{}", refused.message);
    }
}
