//! Tests of the links of all Markdown files of the repository, as they are read on the web: files, headings, figures.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
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

/// The Markdown files of a folder, except build folders and hidden ones; `.github` is in.
fn files(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_hidden = name.starts_with('.') && name != ".github";
        if path.is_dir() && !is_hidden && !["target", "node_modules", "venv"].contains(&name.as_str()) {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).unwrap();
            found.insert(path, text);
        }
    }
}

/// The lines that are no code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of a page's links and pictures.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for line in prose(text) {
        // Text between backticks is no link, but a link's text may be between backticks.
        for part in line.split('`').step_by(2) {
            let ends = part.split("](").skip(1);
            links.extend(ends.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link));
        }
    }
    links
}

/// The places that the headings of a page are, by GitHub's rule and mdBook's.
fn places(text: &str) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for heading in prose(text).filter(|line| line.starts_with('#')) {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        let place: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        // A heading that is there again has a number.
        let numbered = (1..).map(|k| format!("{place}-{k}"));
        let free = std::iter::once(place.clone()).chain(numbered).find(|place| !places.contains(place));
        places.extend(free);
    }
    places
}

#[test]
fn links_lead_somewhere() {
    let mut pages = BTreeMap::new();
    files(&root(), &mut pages);
    assert!(pages.len() > 30, "{}", pages.len());
    let places: BTreeMap<&PathBuf, BTreeSet<String>> = pages.iter().map(|(file, text)| (file, places(text))).collect();
    let (mut broken, mut count) = (Vec::new(), 0);
    for (file, text) in &pages {
        for link in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (path, place) = link.split_once('#').map_or((link, None), |(path, place)| (path, Some(place)));
            let folder = file.parent().unwrap();
            let target = if path.is_empty() { file.clone() } else { normal(&folder.join(path)) };
            let has = |place: &str| places.get(&target).is_none_or(|places| places.contains(place));
            if !target.exists() || !place.is_none_or(has) {
                broken.push(format!("{}: {link}", file.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(count > 100, "{count}");
    assert!(broken.is_empty(), "links that lead nowhere:\n  {}", broken.join("\n  "));
}

#[test]
fn every_figure_is_shown() {
    let docs = root().join("docs");
    let mut pages = BTreeMap::new();
    files(&docs, &mut pages);
    let text: String = pages.into_values().collect();
    for figure in fs::read_dir(docs.join("figures")).unwrap() {
        let name = figure.unwrap().file_name().to_string_lossy().into_owned();
        assert!(text.contains(&format!("figures/{name})")), "no page shows docs/figures/{name}");
    }
}

#[test]
fn links_and_places_are_found() {
    let text =
        "# A b, `c`: d_e\n\n[x](y.md#z) `[no](link)` [`f`](g.md)\n\n```\n# no\n[no](link)\n```\n\n## B\n\n## B\n";
    assert_eq!(links(text), ["y.md#z", "g.md"]);
    assert_eq!(places(text).into_iter().collect::<Vec<_>>(), ["a-b-c-d_e", "b", "b-1"]);
}

#[test]
fn every_example_is_named_and_short() {
    let start = fs::read_to_string(root().join("docs/start.md")).unwrap();
    for example in fs::read_dir(root().join("crates/pointwise/examples")).unwrap() {
        let path = example.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(start.contains(&format!("\n| `{name}` |")), "docs/start.md does not name the example {name}");
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < 60, "{name} has {lines} lines");
    }
}
