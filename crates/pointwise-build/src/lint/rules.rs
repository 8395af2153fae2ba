//! The rules themselves.

use std::collections::BTreeSet;

use super::{Lint, Rule, Violation, access::Access};
use crate::{
    Sm,
    facts::Facts,
    ptx::{Entry, Kind, Module, Statement},
};

/// Checks that the header is for the target.
pub(super) fn header(module: &Module<'_>, sm: Sm) -> Vec<Violation> {
    let violation = |rule, text| Violation { rule, entry: None, op: None, line: 0, text };
    let mut found = Vec::new();
    // `sm_90a` and the like hold code for that one target only.
    if module.target != sm.to_string() {
        found.push(violation(Rule::Target { asked: sm }, format!(".target {}", module.target)));
    }
    if let Some(newest) = sm.newest_ptx().filter(|newest| module.version > *newest) {
        found.push(violation(Rule::Version { newest }, format!(".version {}.{}", module.version.0, module.version.1)));
    }
    found
}

/// Checks that nothing but shared memory is declared, and no entry twice.
pub(super) fn declarations(module: &Module<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for declaration in &module.declarations {
        let rule = match declaration.kind {
            Kind::Shared | Kind::Other => continue,
            Kind::Extern => Rule::Extern,
            Kind::Function => Rule::Function,
            Kind::Data => Rule::Data,
        };
        let text = declaration.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = text.split('{').next().unwrap_or_default().trim_end().to_owned();
        found.push(Violation { rule, entry: None, op: None, line: declaration.line, text });
    }
    let mut names = BTreeSet::new();
    for entry in module.entries.iter().filter(|entry| !names.insert(entry.name)) {
        found.push(Violation {
            rule: Rule::Twice,
            entry: Some(entry.name.to_owned()),
            op: None,
            line: entry.line,
            text: String::new(),
        });
    }
    found
}

/// Checks the instructions of one entry.
pub(super) fn entry(
    module: &Module<'_>,
    entry: &Entry<'_>,
    lint: &Lint,
    facts: Option<&Facts>,
    found: &mut Vec<Violation>,
) {
    let op = facts.map(|facts| facts.op.clone());
    let mut add = |rule, line, text: &str| {
        found.push(Violation { rule, entry: Some(entry.name.to_owned()), op: op.clone(), line, text: text.to_owned() });
    };
    let shared = module.declarations.iter().any(|it| it.kind == Kind::Shared && entry.mentions(it.name));
    let (mut barriers, mut loads, mut stores) = (0, Widths::default(), Widths::default());
    for statement in entry.statements() {
        if let Some(rule) = forbidden(&statement) {
            add(rule, statement.line, statement.text);
        }
        let opcode = statement.opcode();
        // A warp's barrier waits for no other warp, so one too many does no harm.
        let is_of_a_warp = opcode.starts_with("bar.warp.");
        if !is_of_a_warp && (opcode.starts_with("bar.") || opcode.starts_with("barrier.")) {
            barriers += 1;
        }
        // A copy to shared memory says its bytes behind the two addresses.
        if opcode.starts_with("cp.async.ca.") || opcode.starts_with("cp.async.cg.") {
            let bytes =
                statement.text.trim_end_matches(';').rsplit(',').next().and_then(|last| last.trim().parse().ok());
            loads.add(8 * bytes.unwrap_or(0_u32).min(VECTOR / 8));
        }
        let Some(access) = Access::of(opcode) else {
            continue;
        };
        match access.space {
            None => add(Rule::Generic, statement.line, statement.text),
            Some("local") => add(Rule::Local, statement.line, statement.text),
            Some("global") => match access.operation {
                "ld" => loads.add(access.bits),
                "st" => stores.add(access.bits),
                _ => {}
            },
            Some(_) => {}
        }
        if access.read_only && !lint.read_only_loads {
            add(Rule::ReadOnlyLoad, statement.line, statement.text);
        }
    }
    let of_facts = facts.and_then(|facts| facts.barriers);
    let declared = if shared { of_facts.unwrap_or(lint.barriers) } else { 0 };
    if barriers != declared {
        add(Rule::Barriers { declared, found: barriers }, entry.line, "");
    }
    let promise = facts.map_or_else(|| (lint.vectors)(entry.name), |facts| facts.vectors);
    // An entry whose result is the same for every operand (`isnan` of an integer) loads nothing. It breaks no promise.
    if promise.loads && loads.widest > 0 && loads.widest < VECTOR {
        add(Rule::NoVectorLoad, entry.line, "");
    }
    if promise.stores && stores.widest < VECTOR && stores.lanes() < loads.lanes().max(2) {
        add(Rule::NoVectorStore, entry.line, "");
    }
}

/// Bits of a whole vector.
const VECTOR: u32 = 128;

/// The widths of an entry's accesses of one kind, in bits; zeros if there are none.
#[derive(Clone, Copy, Default)]
struct Widths {
    widest: u32,
    narrowest: u32,
}

impl Widths {
    fn add(&mut self, bits: u32) {
        self.widest = self.widest.max(bits);
        self.narrowest = if self.narrowest == 0 { bits } else { self.narrowest.min(bits) };
    }

    /// Returns the number of elements that the widest access moves. The narrowest moves one: an entry of vectors does
    /// the elements before and after them one by one. The number tells a predicate from vectors taken apart: it stores
    /// a byte for each element, so its vectors are narrower, but hold as many elements as the vectors that it loads.
    fn lanes(self) -> u32 {
        self.widest.checked_div(self.narrowest).unwrap_or(0)
    }
}

/// Returns the rule that a statement breaks by itself.
fn forbidden(statement: &Statement<'_>) -> Option<Rule> {
    let opcode = statement.opcode();
    match opcode.split('.').next().unwrap_or_default() {
        "call" => Some(Rule::Call),
        "trap" | "brkpt" => Some(Rule::Trap),
        "" if opcode == ".local" => Some(Rule::Local),
        "" if opcode == ".global" || opcode == ".const" => Some(Rule::Data),
        _ => None,
    }
}
