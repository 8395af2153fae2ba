//! `cargo xtask book`: builds the book in `target/book` and checks its links.
//!
//! The pages come from `docs/`, and the program `book` writes one for each op. A pinned version of mdBook makes HTML of
//! them; it is installed in `target/tools` if it is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::build_ptx::target;
use crate::shell::{Background, build_tests, run};
use crate::tools::Tool;

/// Without features: no server, no search, which is most of its dependencies.
const MDBOOK: Tool = Tool { name: "mdbook", version: "0.5.4", options: &["--no-default-features"] };

/// Builds and checks the book.
///
/// # Errors
/// mdBook cannot be installed; a page that cannot be made; links that lead nowhere.
pub(crate) fn build() -> Result<()> {
    let mdbook = MDBOOK.program()?;
    let (pages, book) = (target().join("book-pages"), target().join("book"));
    // Pages that are gone would stay.
    remove(&pages)?;
    remove(&book)?;
    // The program comes with its tests.
    build_tests("calls")?;
    let program = target().join(format!("debug/book{}", std::env::consts::EXE_SUFFIX));
    run(Command::new(program).arg("docs").arg(&pages))?;
    run(Command::new(mdbook).arg("build").arg(&pages).arg("--dest-dir").arg(&book))?;
    let broken = broken_links(&book)?;
    if !broken.is_empty() {
        bail!("links of the book that lead nowhere:\n  {}", broken.join("\n  "));
    }
    println!("the book is {}", book.join("index.html").display());
    Ok(())
}

/// [`build`], where mdBook is to be had; otherwise says why not.
///
/// # Errors
/// The errors of [`build`], but for mdBook.
pub(crate) fn build_if_possible() -> Result<()> {
    match MDBOOK.program() {
        Ok(_) => build(),
        Err(error) => {
            println!("the book is not built: {error:#}");
            Ok(())
        }
    }
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Starts to install mdBook where it is not there.
pub(crate) fn start_install() -> Result<Option<Background>> {
    MDBOOK.start_install()
}

/// Links and pictures of the HTML pages in a folder whose file or place is not there, as `page: link`.
fn broken_links(folder: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    let mut files = BTreeSet::new();
    collect(folder, &mut files)?;
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "html")) {
        let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        pages.insert(file.clone(), text);
    }
    let ids: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(file, text)| (file, attributes(text, "id").collect())).collect();
    let mut broken = Vec::new();
    // The page for addresses that are none has links from the root of the site.
    for (file, text) in pages.iter().filter(|(file, _)| !file.ends_with("404.html")) {
        for link in attributes(text, "href").chain(attributes(text, "src")) {
            if !leads_somewhere(file, link, &files, &ids) {
                broken.push(format!("{}: {link}", file.strip_prefix(folder).unwrap_or(file).display()));
            }
        }
    }
    Ok(broken)
}

fn leads_somewhere(
    page: &Path,
    link: &str,
    files: &BTreeSet<PathBuf>,
    ids: &BTreeMap<&PathBuf, BTreeSet<&str>>,
) -> bool {
    // Other sites are not checked.
    if link.contains("://") || link.starts_with("data:") || link.starts_with("mailto:") {
        return true;
    }
    let (path, place) = link.split_once('#').map_or((link, None), |(path, place)| (path, Some(place)));
    let target = match (path, page.parent()) {
        ("", _) => page.to_path_buf(),
        (path, Some(folder)) => normal(&folder.join(path)),
        (path, None) => PathBuf::from(path),
    };
    let place = place.filter(|place| !place.is_empty());
    files.contains(&target) && place.is_none_or(|place| ids.get(&target).is_some_and(|ids| ids.contains(place)))
}

/// Without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

fn collect(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.insert(entry.path());
        }
    }
    Ok(())
}

/// The values of an attribute in a text of HTML, as mdBook writes it: in double quotes.
fn attributes<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
    html.split('<').flat_map(move |tag| {
        let tag = tag.split_once('>').map_or(tag, |(tag, _)| tag);
        tag.match_indices(name).filter_map(move |(at, _)| {
            let begins_word = tag[..at].ends_with(char::is_whitespace);
            let value = tag[at + name.len()..].strip_prefix("=\"").filter(|_| begins_word)?;
            value.split_once('"').map(|(value, _)| value)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_attribute() {
        let html = r##"<a class="x" href="a.html#b">href="no"</a><img src="c.svg" data-src="d.svg"><h2 id="b">"##;
        assert_eq!(attributes(html, "href").collect::<Vec<_>>(), ["a.html#b"]);
        assert_eq!(attributes(html, "src").collect::<Vec<_>>(), ["c.svg"]);
        assert_eq!(attributes(html, "id").collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let folder = std::env::temp_dir().join(format!("pointwise-book-{}", std::process::id()));
        fs::create_dir_all(folder.join("ops")).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("a.html", r##"<h1 id="top"><a href="ops/b.html#there"><a href="#top"><a href="https://example.org/x">"##);
        write("ops/b.html", r##"<p id="there"><a href="../a.html#gone"><a href="c.html"><img src="../a.html">"##);
        let broken = broken_links(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(broken, ["ops/b.html: ../a.html#gone", "ops/b.html: c.html"]);
    }
}
