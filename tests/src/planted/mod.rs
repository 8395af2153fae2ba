//! Faults planted in the text of a kernel: one instruction is changed.

pub mod runs;

use regex_lite::{Captures, Regex};

/// A kernel's text with a fault.
#[derive(Clone, Debug)]
pub struct Planted {
    /// The rule that planted it, and the place among those where the rule fits: `first` or `last`.
    pub name: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// The line as it was, with one space between words, and no numbers of registers: these change with any other line.
    pub before: String,
    /// The whole text, with the fault.
    pub ptx: String,
}

/// Changes a line; `None` if the rule has nothing to change.
type Change = fn(&str) -> Option<String>;

/// The rules, by name.
const RULES: &[(&str, Change)] = &[
    // A bound that lets one thread too many through, or one too few.
    ("bound", |line| {
        replace(line, r"\bsetp\.(ge|gt|lt|le)\.(u32|u64|s32|s64)\b", |found| {
            let other = match &found[1] {
                "ge" => "gt",
                "gt" => "ge",
                "lt" => "le",
                _ => "lt",
            };
            format!("setp.{other}.{}", &found[2])
        })
    }),
    // A branch that is never taken: the check before it is gone.
    ("unchecked", |line| replace(line, r"^\s*@!?%p\d+\s+bra\s+\S+;\s*$", |_| String::new())),
    // Narrower vectors.
    ("load_width", |line| {
        replace(line, r"\bld\.global([.\w]*)\.v4(\.\w+)\s*\{([^,}]+),([^,}]+),[^}]*\}", |found| {
            format!("ld.global{}.v2{} {{{},{}}}", &found[1], &found[2], &found[3], &found[4])
        })
    }),
    ("store_width", |line| {
        replace(line, r"\bst\.global([.\w]*)\.v4(\.\w+)(\s*\[[^\]]+\]\s*,\s*)\{([^,}]+),([^,}]+),[^}]*\}", |found| {
            format!("st.global{}.v2{}{}{{{},{}}}", &found[1], &found[2], &found[3], &found[4], &found[5])
        })
    }),
    // No barrier.
    ("barrier", |line| replace(line, r"\bbar\.sync[^;]*;", |_| String::new())),
    // No wait for what is being copied, and copies of half a vector.
    ("wait", |line| replace(line, r"\bcp\.async\.wait_all;", |_| String::new())),
    ("copy_width", |line| {
        replace(line, r"\bcp\.async\.cg(\.shared\.global [^;]*), 16;", |found| format!("cp.async.ca{}, 8;", &found[1]))
    }),
    // Operands the wrong way round.
    ("swapped", |line| {
        replace(line, r"\bsub\.([\w.]+)\s+(%\w+)\s*,\s*(%\w+)\s*,\s*(%\w+)\s*;", |found| {
            format!("sub.{} {}, {}, {};", &found[1], &found[2], &found[4], &found[3])
        })
    }),
    ("selected", |line| {
        replace(line, r"\bselp\.(\w+)\s+(%\w+)\s*,\s*([^,;]+),\s*([^,;]+),\s*(%\w+)\s*;", |found| {
            format!("selp.{} {}, {}, {}, {};", &found[1], &found[2], &found[4], &found[3], &found[5])
        })
    }),
    // A shift by one bit less.
    ("shift", |line| {
        replace(line, r"\b(shl|shr)\.(\w+)\s+(%\w+)\s*,\s*(%\w+)\s*,\s*(\d+)\s*;", |found| {
            let by: u32 = found[5].parse().unwrap_or(1);
            format!("{}.{} {}, {}, {};", &found[1], &found[2], &found[3], &found[4], by.saturating_sub(1))
        })
    }),
    // Elements of half the size.
    ("element_size", |line| {
        replace(line, r"\bmul\.wide\.(u32|s32)\s+(%\w+)\s*,\s*(%\w+)\s*,\s*(2|4|8|16)\s*;", |found| {
            let size: u32 = found[4].parse().unwrap_or(2);
            format!("mul.wide.{} {}, {}, {};", &found[1], &found[2], &found[3], size / 2)
        })
    }),
    // The index of the thread behind.
    ("index", |line| {
        replace(line, r"\bmov\.u32\s+(%\w+)\s*,\s*%tid\.x\s*;", |found| {
            format!("mov.u32 {0}, %tid.x; add.s32 {0}, {0}, 1;", &found[1])
        })
    }),
    // A store, or a load, that a predicate no longer keeps back.
    ("unguarded", |line| replace(line, r"@!?%?\w+\s+(ld|st)\.global", |found| format!("{}.global", &found[1]))),
    // Another coefficient.
    ("constant", |line| {
        replace(line, r"\b0f([0-9A-Fa-f]{8})\b", |found| {
            let bits = u32::from_str_radix(&found[1], 16).unwrap_or(0);
            format!("0f{:08X}", bits ^ 0x0040_0000)
        })
    }),
];

fn replace(line: &str, pattern: &str, by: impl Fn(&Captures<'_>) -> String) -> Option<String> {
    let changed = Regex::new(pattern).ok()?.replace(line, by).into_owned();
    (changed != line).then_some(changed)
}

/// Faults of all rules that have something to change in the kernel: of each rule at its first and at its last place.
#[must_use]
pub fn all(ptx: &str) -> Vec<Planted> {
    let lines: Vec<&str> = ptx.lines().collect();
    let body = lines.iter().position(|line| line.trim_start().starts_with(".reg")).unwrap_or(0);
    let mut found = Vec::new();
    for (rule, change) in RULES {
        let places: Vec<usize> = (body..lines.len()).filter(|&at| change(lines[at]).is_some()).collect();
        let (first, last) = (places.first(), places.last().filter(|_| places.len() > 1));
        for (place, &at) in first.map(|at| ("first", at)).into_iter().chain(last.map(|at| ("last", at))) {
            let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            changed[at] = change(lines[at]).unwrap_or_default();
            found.push(planted(format!("{rule}_{place}"), at, &lines, changed));
        }
    }
    found.extend(store_first(&lines, body));
    found
}

/// The first store moved in front of the first load.
fn store_first(lines: &[&str], body: usize) -> Option<Planted> {
    let find = |what: &str| (body..lines.len()).find(|&at| lines[at].contains(what));
    let (load, store) = (find("ld.global")?, find("st.global")?);
    if store < load {
        return None;
    }
    let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let moved = changed.remove(store);
    changed.insert(load, moved);
    Some(planted("store_first".to_owned(), store, lines, changed))
}

fn planted(name: String, at: usize, lines: &[&str], changed: Vec<String>) -> Planted {
    let words: Vec<&str> = lines[at].split_whitespace().collect();
    let before = replace_all(&words.join(" "), r"(%[a-z]+|BB)\d+", "$1");
    Planted { name, line: at + 1, before: replace_all(&before, r"BB_\d+", "BB"), ptx: changed.join("\n") + "\n" }
}

fn replace_all(text: &str, pattern: &str, by: &str) -> String {
    Regex::new(pattern).map_or_else(|_| text.to_owned(), |pattern| pattern.replace_all(text, by).into_owned())
}
