//! `cargo xtask book`: docs/ as a book, its links checked.
//!
//! Pages link to files of the repository outside docs/, such as action.yml; the book has them too.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tool::{cache, cargo, root, run, say, target};
use crate::types;

/// The one that the book is built by.
const VERSION: &str = "0.5.4";

/// Where the repository's own files are in the book.
const REPOSITORY: &str = "repository";

/// Checks every link of docs/, README.md and the like, and builds the book into the target folder.
pub(crate) fn build() -> Result<()> {
    check_links()?;
    if std::fs::read_to_string(root().join("docs/json.md"))? != types::page()? {
        bail!("docs/json.md is out of date: run `cargo xtask docs`");
    }
    let mdbook = mdbook()?;
    let (source, book) = (target().join("book-source"), target().join("book"));
    drop(std::fs::remove_dir_all(&source));
    drop(std::fs::remove_dir_all(&book));
    copy(&root().join("docs"), &source)?;
    gather(&source)?;
    let output = Command::new(mdbook)
        .arg("build")
        .arg(&source)
        .arg("--dest-dir")
        .arg(&book)
        .output()
        .context("cannot start mdbook")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let is_warned = said.lines().any(|line| line.contains("WARN") || line.contains("ERROR"));
    if !output.status.success() || is_warned {
        bail!("mdbook does not build docs/ without a warning:\n{said}");
    }
    check_requests(&book)?;
    say(&format!("the book is {}", book.join("index.html").display()));
    Ok(())
}

/// mdBook, installed once: `GATE_MDBOOK` names another copy.
fn mdbook() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("GATE_MDBOOK").filter(|path| !path.is_empty()) {
        return Ok(named.into());
    }
    let folder = cache().join(format!("mdbook-{VERSION}"));
    let binary = folder.join("bin/mdbook");
    if !binary.is_file() {
        say(&format!("installing mdbook {VERSION} into {}", folder.display()));
        let mut install = Command::new(cargo());
        install.args(["install", "--quiet", "--locked", "--debug", "--no-default-features", "--root"]).arg(&folder);
        run(install.arg(format!("mdbook@{VERSION}")).env_remove("RUSTFLAGS"))?;
    }
    Ok(binary)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            std::fs::copy(&path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// Puts the files of the repository that pages link to beside the pages, and makes the links lead there.
fn gather(source: &Path) -> Result<()> {
    for page in markdown(source)? {
        let text = std::fs::read_to_string(&page)?;
        for (_, target) in links(&text) {
            let Some(file) = target.strip_prefix("../") else { continue };
            let file = file.split('#').next().unwrap_or(file);
            let kept = source.join(REPOSITORY).join(file);
            std::fs::create_dir_all(kept.parent().unwrap_or(source))?;
            std::fs::copy(root().join(file), &kept).with_context(|| format!("cannot copy {file}"))?;
        }
        std::fs::write(&page, text.replace("](../", &format!("]({REPOSITORY}/")))?;
    }
    Ok(())
}

/// The Markdown files directly in a folder.
fn markdown(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths = entries.collect::<Result<Vec<_>, _>>()?.into_iter().map(|entry| entry.path());
    let mut pages: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    Ok(pages)
}

/// Every link within the repository leads to a file, and to a heading of it where it names one.
pub(crate) fn check_links() -> Result<()> {
    let mut pages = markdown(&root())?;
    pages.extend(markdown(&root().join("docs"))?);
    let mut anchors: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    let mut broken = Vec::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
        for (line, link) in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = page.parent().unwrap_or(page);
            let leads = if file.is_empty() { page.clone() } else { normal(&folder.join(file)) };
            let place = || format!("{}:{line}", page.strip_prefix(root()).unwrap_or(page).display());
            if !leads.exists() {
                broken.push(format!("{}: there is no {link}", place()));
            } else if !anchor.is_empty() {
                if !anchors.contains_key(&leads) {
                    let text = std::fs::read_to_string(&leads)?;
                    anchors.insert(leads.clone(), headings(&text));
                }
                if !anchors.get(&leads).is_some_and(|known| known.iter().any(|known| known == anchor)) {
                    broken.push(format!("{}: there is no heading {link}", place()));
                }
            }
        }
    }
    if !broken.is_empty() {
        bail!("broken links:\n{}", broken.join("\n"));
    }
    Ok(())
}

/// A path without `..`, by its words alone.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, part| {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
        normal
    })
}

/// Every line outside fenced blocks, with its number.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (!is_fenced && !is_fence).then_some((number, line))
    })
}

/// Where the inline links lead, with the line of each.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // What lies between backticks is code, unless it is a link's text.
        let parts = line.split("](").skip(1).filter_map(|part| part.split_once(')'));
        found.extend(parts.map(|(link, _)| (number, link.split(' ').next().unwrap_or(link).to_owned())));
    }
    found
}

/// The anchors of a page's headings, by the rule of mdBook and of GitHub.
fn headings(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
        let anchor: String = kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect();
        let again = found.iter().filter(|known| **known == anchor).count();
        found.push(if again == 0 { anchor } else { format!("{anchor}-{again}") });
    }
    found
}

/// No page of the book loads anything from elsewhere.
fn check_requests(book: &Path) -> Result<()> {
    for entry in std::fs::read_dir(book).with_context(|| format!("cannot read {}", book.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "html") {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let loads =
            text.split('<').filter(|tag| ["script", "link", "img", "iframe"].iter().any(|one| tag.starts_with(one)));
        let mut outside = loads.filter(|tag| tag.contains("=\"http") || tag.contains("=\"//"));
        if let Some(tag) = outside.next() {
            bail!("{} loads something from elsewhere: <{tag}", path.display());
        }
    }
    Ok(())
}
