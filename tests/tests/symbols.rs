//! The kernels that the host asks for are those that were embedded, each under its name.

use std::collections::BTreeSet;

use pointwise::{
    DType, Strategy,
    embed::embedded,
    info::OpInfo,
    kernel::{Class, Entry, OpDef},
};

/// Every op on elements, element type and class, with the kernel that the host asks for.
fn entries() -> impl Iterator<Item = (&'static OpDef, DType, Class, &'static Entry)> {
    let typed = tests::all().flat_map(|def| def.info.types.iter().map(move |&dtype| (def, dtype)));
    let each = typed.flat_map(|(def, dtype)| Class::ALL.map(|class| (def, dtype, class)));
    each.map(|(def, dtype, class)| (def, dtype, class, def.entry(dtype, class).expect("a kernel")))
}

/// True if an op has a body for elements of a type: one for each compute type, but none for 8-bit floats and random words.
fn has_body(info: &OpInfo, dtype: DType) -> bool {
    let is_fp8 = matches!(dtype, DType::F8E4M3 | DType::F8E5M2);
    let is_other_half = dtype == DType::F16 && info.types.contains(&DType::BF16);
    !info.is_random() && !is_fp8 && !is_other_half
}

/// Returns the symbols of all ops, with the tables of codes and the bodies. `where` has symbols by element width; each counts once.
fn symbols() -> Vec<String> {
    let is_width = |dtype| matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let own = entries().filter(|(def, dtype, ..)| def.info.name != "where" || is_width(*dtype));
    let tables = entries().filter(|(def, dtype, class, _)| {
        *class == Class::Flat && def.info.operands.len() == 1 && Strategy::Table.serves(&def.info, *dtype)
    });
    let tables = tables.map(|(def, dtype, ..)| format!("formula_{}_{dtype}_table", def.info.name));
    let bodies = entries().filter(|(def, dtype, class, _)| {
        *class == Class::Flat && has_body(&def.info, *dtype) && (def.info.name != "where" || is_width(*dtype))
    });
    let bodies = bodies.map(|(def, dtype, ..)| format!("formula_{}_{dtype}_body", def.info.name));
    let rows = pointwise::info::every()
        .filter(|def| def.info.is_of_rows())
        .flat_map(|def| def.info.types.iter().map(move |&dtype| (def, dtype)));
    let rows =
        rows.flat_map(|(def, dtype)| def.entries(dtype).expect("kernels")).map(|entry| entry.symbol().to_owned());
    own.map(|(.., entry)| entry.symbol().to_owned()).chain(tables).chain(bodies).chain(rows).collect()
}

/// Ops and types that have tables have a place for them, and no others.
#[test]
fn ops_of_bytes_have_tables() {
    for (def, dtype, ..) in entries() {
        let serves = Strategy::Table.serves(&def.info, dtype);
        assert!(serves == def.has_table(dtype), "{} {dtype}", def.info.name);
        assert!(!def.has_table(dtype) || dtype.size() == 1, "{} {dtype}", def.info.name);
    }
    for symbol in pointwise_core::launch::LOOKUPS {
        assert!(embedded().is_empty() || embedded().contains(symbol), "{symbol}");
    }
}

#[test]
fn ops_have_a_kernel_for_every_class() {
    for (def, dtype, class, entry) in entries() {
        // Bits are moved by the kernels of an integer of their width.
        let carrier = match (def.info.name, dtype.size()) {
            ("where", 1) => DType::I8,
            ("where", 2) => DType::I16,
            ("where", 4) => DType::I32,
            ("where", _) => DType::I64,
            _ => dtype,
        };
        assert!(entry.symbol().ends_with(&format!("_{}_{carrier}_{class}", def.info.name)), "{entry:?}");
        assert!(embedded().is_empty() || entry.is_embedded(), "{entry:?}");
    }
}

/// `cargo xtask test` builds kernels and says so: without any, the other tests here would have nothing to look at.
#[test]
fn kernels_are_embedded_where_they_must_be() {
    if std::env::var_os("POINTWISE_KERNELS").is_some_and(|kernels| kernels == "required") {
        assert!(!embedded().is_empty(), "built without GPU kernels: {}", embedded().note());
    }
}

/// True if there are kernels to compare with. Without kernels it prints the reason.
fn has_kernels() -> bool {
    if embedded().is_empty() {
        println!("nothing to compare with: this was built without GPU kernels ({})", embedded().note());
    }
    !embedded().is_empty()
}

#[test]
fn no_symbol_stands_for_two_kernels() {
    let mut seen = BTreeSet::new();
    for symbol in symbols() {
        assert!(seen.insert(symbol.clone()), "{symbol}");
    }
}

#[test]
fn embedded_kernels_are_those_asked_for() {
    if !has_kernels() {
        return;
    }
    let asked: BTreeSet<String> = symbols().into_iter().collect();
    for symbol in &asked {
        assert!(embedded().contains(symbol), "{symbol} is not embedded");
    }
    let of_formulas = embedded().entries().filter(|symbol| symbol.starts_with("formula_"));
    let unused: Vec<&str> = of_formulas.filter(|symbol| !asked.contains(*symbol)).collect();
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
