//! The snippets of the README and of the book's pages, as tests: `cargo test -p book --doc`.

#[doc = include_str!("../../README.md")]
pub mod readme {}
#[doc = include_str!("../../docs/start.md")]
pub mod start {}
#[doc = include_str!("../../docs/fusing.md")]
pub mod fusing {}
#[doc = include_str!("../../docs/your-own-op.md")]
pub mod your_own_op {}
#[doc = include_str!("../../docs/gradients.md")]
pub mod gradients {}
#[doc = include_str!("../../docs/rope.md")]
pub mod rope {}
#[doc = include_str!("../../docs/emulator.md")]
pub mod emulator {}
#[doc = include_str!("../../docs/strategies.md")]
pub mod strategies {}

#[cfg(test)]
mod markdown;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Every file of Rust in a folder, as one text.
    fn sources(folder: &Path) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                text += &sources(&path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text += &fs::read_to_string(&path).unwrap();
            }
        }
        text
    }

    /// The pages of the docs' folder, without the notebook.
    fn pages() -> Vec<(String, String)> {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let files = fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path());
        let pages = files.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
        let named = |path: std::path::PathBuf| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
        };
        pages.map(named).collect()
    }

    #[test]
    fn every_page_is_in_the_summary() {
        let pages = pages();
        let (_, summary) = pages.iter().find(|(name, _)| name == "SUMMARY.md").unwrap();
        let is_missing = |name: &&String| *name != "SUMMARY.md" && !summary.contains(&format!("]({name})"));
        let missing: Vec<&String> = pages.iter().map(|(name, _)| name).filter(is_missing).collect();
        assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
    }

    /// Constructions that a reader stumbles over.
    const STUMBLES: [&str; 7] =
        ["of which", "as there is", "as there are", "that of", "those of", "had better", "the latter"];

    #[test]
    fn sentences_are_plain() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let others = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "python/README.md"];
        let others = others.map(|name| (name.to_owned(), fs::read_to_string(root.join(name)).unwrap()));
        let mut found = Vec::new();
        // The table of the ops is made of the sources' documentation.
        for (name, text) in pages().into_iter().chain(others).filter(|(name, _)| name != "ops.md") {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            let words = STUMBLES.iter().filter(|words| text.contains(&format!(" {words} ")));
            found.extend(words.map(|words| format!("{name}: {words}")));
        }
        assert!(found.is_empty(), "say it in two sentences: {found:?}");
    }

    /// Snippets that are no programs of their own are parts of the examples, which are built and run.
    #[test]
    fn ignored_snippets_are_lines_of_the_examples() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let examples = sources(&root.join("examples"))
            + &sources(&root.join("crates/pointwise/examples"))
            + &sources(&root.join("crates/pointwise-candle/examples"));
        let lines: Vec<&str> = examples.lines().map(str::trim).collect();
        let mut missing = Vec::new();
        for page in [
            "README.md",
            "docs/start.md",
            "docs/your-own-op.md",
            "docs/fusing.md",
            "docs/rows.md",
            "docs/candle.md",
            "docs/gradients.md",
            "docs/emulator.md",
        ] {
            let text = fs::read_to_string(root.join(page)).unwrap();
            for snippet in text.split("```rust,ignore\n").skip(1).filter_map(|rest| rest.split("```").next()) {
                let is_missing = |line: &&str| !line.is_empty() && !lines.contains(line);
                missing.extend(snippet.lines().map(str::trim).filter(is_missing).map(|line| format!("{page}: {line}")));
            }
        }
        assert!(missing.is_empty(), "no example has these lines:\n{}", missing.join("\n"));
    }
}
