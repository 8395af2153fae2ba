//! The kernels that the host asks for are those that were embedded, each under its name.

use std::collections::BTreeSet;

use pointwise::{
    DType, Strategy,
    embed::embedded,
    info::several_ops,
    kernel::{Class, Entry, Variant},
};

/// Every op, element type and variant, with the kernel that the host asks for.
fn cases() -> impl Iterator<Item = (&'static str, DType, Variant, Option<&'static Entry>)> {
    let typed = tests::unary().flat_map(|def| def.info.types.iter().map(move |&dtype| (def, dtype)));
    typed.flat_map(|(def, dtype)| {
        Variant::ALL.into_iter().map(move |variant| (def.info.name, dtype, variant, (def.entry)(dtype, variant)))
    })
}

/// The symbols of all of them.
fn symbols() -> Vec<&'static str> {
    cases().filter_map(|(_, _, _, entry)| entry).chain(several_entries()).map(Entry::symbol).collect()
}

/// The kernels of ops of several operands; those of `where` are of element widths, each counted once.
fn several_entries() -> impl Iterator<Item = &'static Entry> {
    let typed = several_ops().flat_map(|def| def.info.types.iter().map(move |&dtype| (def, dtype)));
    let is_once = |dtype| matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let typed = typed.filter(move |(def, dtype)| def.info.name != "where" || is_once(*dtype));
    typed.flat_map(|(def, dtype)| Class::ALL.into_iter().filter_map(move |class| def.entry(dtype, class).ok()))
}

/// Ops and types that have tables have a place for them, and no others.
#[test]
fn ops_of_pairs_of_bytes_have_tables() {
    for def in several_ops() {
        for &dtype in def.info.types {
            let serves = Strategy::Table.serves(&def.info, dtype);
            assert!(serves == def.has_table(dtype), "{} {dtype}", def.info.name);
            assert!(!def.has_table(dtype) || dtype.size() == 1, "{} {dtype}", def.info.name);
        }
    }
    for symbol in pointwise_core::launch::LOOKUPS {
        assert!(embedded().is_empty() || embedded().contains(symbol), "{symbol}");
    }
}

#[test]
fn ops_of_several_operands_have_a_kernel_for_every_class() {
    for def in several_ops() {
        for &dtype in def.info.types {
            // Bits are moved by the kernels of an integer of their width.
            let carrier = match (def.info.name, dtype.size()) {
                ("where", 1) => DType::I8,
                ("where", 2) => DType::I16,
                ("where", 4) => DType::I32,
                ("where", _) => DType::I64,
                _ => dtype,
            };
            for class in Class::ALL {
                let entry = def.entry(dtype, class).expect("a kernel");
                assert!(entry.symbol().ends_with(&format!("_{}_{carrier}_{class}", def.info.name)), "{entry:?}");
                assert!(embedded().is_empty() || entry.is_embedded(), "{entry:?}");
            }
        }
    }
}

/// `cargo xtask test` builds kernels and says so: without any, the other tests here would have nothing to look at.
#[test]
fn kernels_are_embedded_where_they_must_be() {
    if std::env::var_os("POINTWISE_KERNELS").is_some_and(|kernels| kernels == "required") {
        assert!(!embedded().is_empty(), "built without GPU kernels: {}", embedded().note());
    }
}

/// Whether there are kernels to compare with; where there are none, says why.
fn has_kernels() -> bool {
    if embedded().is_empty() {
        println!("nothing to compare with: this was built without GPU kernels ({})", embedded().note());
    }
    !embedded().is_empty()
}

#[test]
fn an_op_has_the_kernels_that_serve_it() {
    for (op, dtype, variant, entry) in cases() {
        let info = &tests::unary().find(|def| def.info.name == op).expect("an op of the list").info;
        let expected = match variant {
            Variant::Strided => Some("strided"),
            Variant::RegisterCopy => Some("register_copy"),
            Variant::Table => Strategy::Table.serves(info, dtype).then_some("table"),
            // Of generators and of dropout.
            Variant::Direct | Variant::ExplicitParallel => None,
        };
        let expected = expected.map(|name| format!("unary_{op}_{dtype}_{name}"));
        assert_eq!(entry.map(Entry::symbol), expected.as_deref(), "{op} {dtype} {variant:?}");
    }
}

#[test]
fn no_symbol_stands_for_two_kernels() {
    let mut seen = BTreeSet::new();
    for symbol in symbols() {
        assert!(seen.insert(symbol), "{symbol}");
    }
}

#[test]
fn embedded_kernels_are_those_asked_for() {
    if !has_kernels() {
        return;
    }
    for (op, dtype, variant, entry) in cases() {
        assert!(entry.is_none_or(Entry::is_embedded), "{op} {dtype} {variant:?}: {entry:?} is not embedded");
    }
    let asked: BTreeSet<&str> = symbols().into_iter().collect();
    // A symbol starts with the kind of its table.
    let unary = embedded().entries().filter(|symbol| symbol.starts_with("unary_"));
    let unused: Vec<&str> = unary.filter(|symbol| !asked.contains(symbol)).collect();
    assert!(unused.is_empty(), "nothing asks for {unused:?}");
}

#[test]
fn the_ptx_of_an_entry_is_that_entry_alone() {
    if !has_kernels() {
        return;
    }
    assert!(!embedded().targets().is_empty());
    for sm in embedded().targets() {
        for symbol in embedded().entries() {
            let text = embedded().ptx(symbol, sm).unwrap_or_else(|| panic!("{symbol} has no PTX for sm_{sm}"));
            assert!(text.contains(&format!(".target sm_{sm}\n")), "{symbol}, sm_{sm}");
            let entries: Vec<&str> = text.split(".entry ").skip(1).filter_map(|rest| rest.split('(').next()).collect();
            assert_eq!(entries, [symbol], "sm_{sm}");
        }
    }
}

/// Kernels are launched before those in front of them have ended where the device can wait for them: all do, before
/// anything else.
#[test]
fn every_kernel_waits_first_where_the_device_can() {
    if !has_kernels() {
        return;
    }
    let code = |line: &&str| !line.is_empty() && !line.starts_with(['.', '{']);
    for symbol in embedded().entries() {
        for sm in [80, 89, 90, 100, 120] {
            let text = embedded().ptx(symbol, sm).unwrap_or_else(|| panic!("{symbol} has no PTX for sm_{sm}"));
            let body = text.split_once("\n{").map_or("", |(_, body)| body);
            let first = body.lines().map(str::trim).find(code);
            let expected = if sm < 90 { "//griddepcontrol.wait;" } else { "griddepcontrol.wait;" };
            assert_eq!(first, Some(expected), "{symbol}, sm_{sm}");
            assert_eq!(text.matches("griddepcontrol").count(), 1, "{symbol}, sm_{sm}");
        }
    }
}
