//! The snippets of the README and of the book's pages, as tests: `cargo test -p book --doc`.

macro_rules! pages {
    ($($name:ident $file:literal;)*) => { $(
        #[doc = include_str!(concat!("../../", $file))]
        pub mod $name {}
    )* };
}

pages! {
    readme "README.md";
    start "docs/start.md";
    fusing "docs/fusing.md";
    gradients "docs/gradients.md";
    rope "docs/rope.md";
    emulator "docs/emulator.md";
    strategies "docs/strategies.md";
}

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

    /// Snippets that are no programs of their own are parts of the examples, which are built and run.
    #[test]
    fn ignored_snippets_are_lines_of_the_examples() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let examples = sources(&root.join("examples"));
        let lines: Vec<&str> = examples.lines().map(str::trim).collect();
        let mut missing = Vec::new();
        for page in ["README.md", "docs/start.md", "docs/fusing.md", "docs/gradients.md", "docs/emulator.md"] {
            let text = fs::read_to_string(root.join(page)).unwrap();
            for snippet in text.split("```rust,ignore\n").skip(1).filter_map(|rest| rest.split("```").next()) {
                let is_missing = |line: &&str| !line.is_empty() && !lines.contains(line);
                missing.extend(snippet.lines().map(str::trim).filter(is_missing).map(|line| format!("{page}: {line}")));
            }
        }
        assert!(missing.is_empty(), "no example has these lines:\n{}", missing.join("\n"));
    }
}
