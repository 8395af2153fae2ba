//! Writes the generated pages of the book: `book DOCS OUT` copies the folder DOCS to OUT and adds a page for each op,
//! with its curves, to it and to its `SUMMARY.md`. `cargo xtask book` calls it.
//!
//! Curves of functions are computed when it runs. Measurements come from the files in `docs/data` and from the tables
//! in `accuracy.md` and `performance.md`.

mod accuracy;
mod beside;
mod block;
mod canvas;
mod curves;
mod errors;
mod links;
mod pages;
mod pictures;
mod plot;
mod python;
mod roofline;
mod rotary;
mod several;
mod speed;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [docs, out] = arguments.as_slice() else { bail!("usage: book DOCS OUT") };
    copy(docs, out)?;
    links::rewrite(docs, out)?;
    for (name, svg) in pictures::all()? {
        fs::write(out.join("figures").join(name), svg)?;
    }
    let count = pages::write(out)?;
    println!("{count} pages of ops in {}", out.display());
    Ok(())
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(|| format!("writing {}", target.display()))?;
        }
    }
    Ok(())
}
