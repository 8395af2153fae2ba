//! Points links of a page to the project's repository if their files are no part of the book.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// The project's files on the web.
const REPOSITORY: &str = "https://github.com/pointwise-rs/pointwise/blob/main";

/// Rewrites the links of all pages in `out`, which is a copy of `docs`.
///
/// # Errors
/// A link to a file that is not there.
pub(crate) fn rewrite(docs: &Path, out: &Path) -> Result<()> {
    folder(docs, out, Path::new(""))
}

fn folder(docs: &Path, out: &Path, below: &Path) -> Result<()> {
    for entry in fs::read_dir(out.join(below))? {
        let entry = entry?;
        let place = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            folder(docs, out, &place)?;
        } else if place.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(out.join(&place))?;
            let text = page(&text, below, docs).with_context(|| format!("in {}", place.display()))?;
            fs::write(out.join(&place), text)?;
        }
    }
    Ok(())
}

/// A page of the folder `below` the docs.
fn page(text: &str, below: &Path, docs: &Path) -> Result<String> {
    let up = "../".repeat(below.components().count() + 1);
    let begin = format!("]({up}");
    let mut parts = text.split(begin.as_str());
    let mut rewritten = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((link, rest)) = part.split_once(')') else { bail!("a link without an end: ]({up}{part}") };
        let path: PathBuf = docs.join("..").join(link.split('#').next().unwrap_or(link));
        if !path.exists() {
            bail!("the link {up}{link} leads nowhere");
        }
        rewritten += &format!("]({REPOSITORY}/{link}){rest}");
    }
    // mdBook makes the index of its folder of such a page, but does not follow links to it.
    Ok(rewritten.replace("](README.md", "](index.md").replace("](notebook/README.md", "](notebook/index.md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_go_to_the_repository() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let at = |text, below: &str| page(text, Path::new(below), &docs);
        let out = format!("[a]({REPOSITORY}/README.md) and [b](bench.md#times)");
        assert_eq!(at("[a](../README.md) and [b](bench.md#times)", "").unwrap(), out);
        assert_eq!(
            at("[b](../bench.md) [a](../../README.md)", "notebook").unwrap(),
            format!("[b](../bench.md) [a]({REPOSITORY}/README.md)")
        );
        assert!(at("[a](../no/such/file.md)", "").is_err());
        assert_eq!(at("[n](notebook/README.md)", "").unwrap(), "[n](notebook/index.md)");
    }
}
