//! Each rule on a text that keeps it and on one that breaks it.

use std::collections::BTreeMap;

use super::*;
use crate::{facts, ptx};

const HEADER: &str = ".version 7.8\n.target sm_90\n.address_size 64\n";

/// Returns the rules broken by an entry `k` with this body, beside these declarations.
fn rules(declarations: &str, body: &str, lint: &Lint) -> Vec<Rule> {
    let text =
        format!("{HEADER}{declarations}\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n{{\n{body}\nret;\n}}\n");
    let module = ptx::parse(&text).unwrap();
    check(&module, Sm(90), lint, &facts::read(&text)).into_iter().map(|violation| violation.rule).collect()
}

fn body(body: &str) -> Vec<Rule> {
    rules("", body, &Lint::default())
}

fn declared(declarations: &str) -> Vec<Rule> {
    rules(declarations, "", &Lint::default())
}

#[test]
fn a_clean_kernel() {
    let clean = "ld.param.b64 %rd1, [k_param_0];\ncvta.to.global.u64 %rd2, %rd1;\nld.global.b32 %r1, [%rd2];\n\
                 st.global.b32 [%rd2], %r1;";
    assert_eq!(body(clean), []);
}

#[test]
fn declarations() {
    assert_eq!(declared(".shared .align 16 .b8 table[256];"), []);
    assert_eq!(declared(".extern .func panic_bounds_check\n(\n.param .b64 p\n)\n;"), [Rule::Extern]);
    assert_eq!(declared(".extern .shared .align 16 .b8 dynamic[];"), []);
    assert_eq!(declared(".extern .entry elsewhere();"), [Rule::Extern]);
    assert_eq!(declared(".visible .func helper()\n{\nret;\n}"), [Rule::Function]);
    assert_eq!(declared(".global .align 1 .b8 message[2] = {1, 2};"), [Rule::Data]);
    assert_eq!(declared(".const .align 4 .b32 x;"), [Rule::Data]);
}

#[test]
fn data_of_an_entry() {
    assert_eq!(body(".global .align 4 .b32 x;"), [Rule::Data]);
    assert_eq!(body(".const .align 4 .b32 x;"), [Rule::Data]);
}

#[test]
fn calls_and_traps() {
    assert_eq!(body("{ // callseq 0, 0\ncall.uni\nhelper,\n(\nparam0\n);\n}"), [Rule::Call]);
    assert_eq!(body("@%p1 trap;"), [Rule::Trap]);
    assert_eq!(body("brkpt;"), [Rule::Trap]);
    assert_eq!(body("bra $L_call;\n$L_call:"), []);
}

#[test]
fn local_memory() {
    assert_eq!(body(".local .align 16 .b8 __local_depot0[16];"), [Rule::Local]);
    assert_eq!(body("ld.local.b32 %r1, [%rd1];"), [Rule::Local]);
    assert_eq!(body("st.local.v4.b32 [%rd1], {%r1, %r2, %r3, %r4};"), [Rule::Local]);
}

#[test]
fn generic_accesses() {
    assert_eq!(body("ld.b32 %r1, [%rd1];"), [Rule::Generic]);
    assert_eq!(body("st.v4.b32 [%rd1], {%r1, %r2, %r3, %r4};"), [Rule::Generic]);
    assert_eq!(body("atom.add.u32 %r1, [%rd1], 1;"), [Rule::Generic]);
}

#[test]
fn the_read_only_path() {
    assert_eq!(body("ld.global.nc.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];"), [Rule::ReadOnlyLoad]);
    let allowed = Lint { read_only_loads: true, ..Lint::default() };
    assert_eq!(rules("", "ld.global.nc.b32 %r1, [%rd1];", &allowed), []);
}

#[test]
fn barriers() {
    let shared = ".shared .align 16 .b8 table[256];";
    let with = |body| rules(shared, body, &Lint::default());
    assert_eq!(with("{ .reg .b32 a; mov.u32 a, table; bar.sync 0; }"), []);
    assert_eq!(with("mov.u32 %r1, table;"), [Rule::Barriers { declared: 1, found: 0 }]);
    assert_eq!(with("mov.u32 %r1, table;\nbar.sync 0;\nbar.sync 0;"), [Rule::Barriers { declared: 1, found: 2 }]);
    let undeclared = Rule::Barriers { declared: 0, found: 1 };
    assert_eq!(with("bar.sync 0;"), std::slice::from_ref(&undeclared));
    assert!(undeclared.to_string().contains("kernel_crate!()"), "{undeclared}");
    assert_eq!(with("bar.warp.sync 0xffffffff;"), []);
    assert_eq!(with(""), []);
}

#[test]
fn vector_promises() {
    let both = Lint {
        vectors: |name| {
            if name == "k" { Vectors::BOTH } else { Vectors::NONE }
        },
        ..Lint::default()
    };
    let load = "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];\n";
    assert_eq!(rules("", &format!("{load}st.global.v2.b64 [%rd1], {{%rd3, %rd4}};"), &both), []);
    assert_eq!(rules("", &format!("{load}st.global.b32 [%rd1], %r1;"), &both), [Rule::NoVectorStore]);
    assert_eq!(rules("", "ld.global.v2.b32 {%r1, %r2}, [%rd1];", &both), [Rule::NoVectorLoad, Rule::NoVectorStore]);
    assert_eq!(rules("", "st.global.v4.b32 [%rd1], {%r1, %r1, %r1, %r1};", &both), []);
    // A copy to shared memory is a load.
    let copy = |bytes| {
        let copy = format!("cp.async.ca.shared.global [%r1], [%rd1], {bytes};\n");
        rules("", &format!("{copy}st.global.v4.b32 [%rd1], {{%r1, %r1, %r1, %r1}};"), &both)
    };
    assert_eq!((copy(16), copy(4)), (vec![], vec![Rule::NoVectorLoad]));
}

#[test]
fn vectors_of_narrower_results() {
    let both = Lint { vectors: |_| Vectors::BOTH, ..Lint::default() };
    let stores = |stores: &str| {
        let loads = "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];\nld.global.b32 %r1, [%rd1];\n";
        rules("", &format!("{loads}{stores}"), &both)
    };
    // Four operands of 32 bits, four results of 8.
    assert_eq!(stores("st.global.b32 [%rd1], %r1;\nst.global.b8 [%rd1], %r1;"), []);
    assert_eq!(stores("st.global.v2.b8 [%rd1], {%r1, %r2};\nst.global.b8 [%rd1], %r1;"), [Rule::NoVectorStore]);
    assert_eq!(stores("st.global.b32 [%rd1], %r1;"), [Rule::NoVectorStore]);
    assert_eq!(stores(""), [Rule::NoVectorStore]);
    // The same result for every operand: nothing is loaded.
    assert_eq!(rules("", "st.global.b16 [%rd1], %r1;\nst.global.b8 [%rd1], %r1;", &both), []);
    assert_eq!(rules("", "st.global.b8 [%rd1], %r1;", &both), [Rule::NoVectorStore]);
}

#[test]
fn an_entry_of_an_op_says_what_it_promises() {
    let load = "ld.global.b32 %r1, [%rd1];";
    let promise = |loads| rules(&format!("// entry k: row=1 op=k loads={loads} stores=0"), load, &Lint::default());
    assert_eq!((promise(0), promise(1)), (vec![], vec![Rule::NoVectorLoad]));
}

#[test]
fn entries_twice_in_two_modules() {
    assert_eq!(check_twice(["a", "b"]), []);
    let twice: Vec<_> = check_twice(["a", "b", "a", "a"]).iter().map(ToString::to_string).collect();
    assert_eq!(twice, ["a: defined twice"]);
}

#[test]
fn target_and_version() {
    let of = |text: &str, sm| {
        let module = ptx::parse(text).unwrap();
        check(&module, Sm(sm), &Lint::default(), &BTreeMap::new())
            .into_iter()
            .map(|violation| violation.rule)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(HEADER, 90), []);
    assert_eq!(of(HEADER, 80), [Rule::Target { asked: Sm(80) }, Rule::Version { newest: (7, 0) }]);
    assert_eq!(of(&HEADER.replace("7.8", "8.6"), 90), [Rule::Version { newest: (7, 8) }]);
    assert_eq!(of(&HEADER.replace("sm_90", "sm_90a"), 90), [Rule::Target { asked: Sm(90) }]);
}

#[test]
fn entries_twice() {
    let entry = ".visible .entry k()\n{\nret;\n}\n";
    let text = format!("{HEADER}{entry}{entry}");
    let module = ptx::parse(&text).unwrap();
    let found = check(&module, Sm(90), &Lint::default(), &BTreeMap::new());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].rule.clone(), found[0].line), (Rule::Twice, 8));
}

#[test]
fn entry_sets() {
    let expected = ["a", "b"].map(str::to_owned).into();
    assert_eq!(check_entries(["b", "a"], &expected), []);
    let text: Vec<_> = check_entries(["b", "c"], &expected).iter().map(ToString::to_string).collect();
    assert_eq!(text, ["a: missing", "c: not expected"]);
}

#[test]
fn a_message_names_entry_line_and_text() {
    let text = format!("{HEADER}.visible .entry k()\n{{\n\tld.b32 \t%r1, [%rd1];\n}}\n");
    let module = ptx::parse(&text).unwrap();
    let found = check(&module, Sm(90), &Lint::default(), &BTreeMap::new());
    assert_eq!(found[0].to_string(), "k: an access that names no address space at line 6: ld.b32 \t%r1, [%rd1]");
}
