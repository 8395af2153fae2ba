//! Figures of an op in the tables of other pages.

/// Rows of an op: each with the heading of its table's section and the names of its columns.
pub(crate) struct Found<'a> {
    pub(crate) section: &'a str,
    pub(crate) columns: Vec<&'a str>,
    pub(crate) row: Vec<&'a str>,
}

/// The rows of a Markdown page whose first cell is `op`, with or without backticks.
pub(crate) fn find<'a>(page: &'a str, op: &str) -> Vec<Found<'a>> {
    let (mut section, mut columns, mut found) = ("", Vec::new(), Vec::new());
    let mut is_in_table = false;
    for line in page.lines() {
        if let Some(heading) = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')) {
            section = heading;
        }
        if !line.starts_with('|') {
            is_in_table = false;
            continue;
        }
        let cells = cells(line);
        if !is_in_table {
            (columns, is_in_table) = (cells, true);
        } else if cells.first().is_some_and(|cell| cell.trim_matches('`') == op) {
            found.push(Found { section, columns: columns.clone(), row: cells });
        }
    }
    found
}

/// The cells of a table's line.
pub(crate) fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// The rows as one table each, without the op's name and empty cells.
pub(crate) fn markdown(found: &[Found<'_>]) -> String {
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let mut text = String::new();
    for Found { section, columns, row } in found {
        // A column without a cell for the op is left out of its table.
        let cells = columns.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
        let (columns, row): (Vec<&str>, Vec<&str>) = cells.map(|(column, cell)| (*column, *cell)).unzip();
        let rule = vec!["---"; columns.len()];
        let said = meaning(section).map_or_else(|| section.to_string(), |meaning| format!("{section}, {meaning}"));
        text += &format!("{said}:\n\n{}{}{}\n", line(&columns), line(&rule), line(&row));
    }
    text
}

/// The meaning of a section's columns, if their names do not say it.
fn meaning(section: &str) -> Option<&'static str> {
    match section {
        "Large tensors" => Some(
            "2^28 elements on one H200. By type: a copy's time over the op's. `x best`: the op's time over that of the \
             fastest other library; below 1 is faster",
        ),
        "Ops on rows" => Some("the largest error by the rows' length: ours, PyTorch's"),
        "Gradients" => Some("2^28 elements on one H200: a copy's time over the gradient's"),
        "On the CPU" => Some(
            "nanoseconds an element on one thread; then PyTorch's time over ours for 2^16 elements on one thread and on \
             two, and for 2^22 on one and on two; above 1 is faster",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_an_op_are_found_in_all_tables() {
        let page = "# A\n\n| op | f32 |\n|---|---|\n| exp | 1 |\n| `expm1` | 2 |\n\n## B\n\n| op | mean |\n|---|---|\n| expm1 | 3 |\n";
        let found = find(page, "expm1");
        let seen: Vec<_> = found.iter().map(|found| (found.section, found.columns[1], found.row[1])).collect();
        assert_eq!(seen, [("A", "f32", "2"), ("B", "mean", "3")]);
        assert!(find(page, "exp2").is_empty());
        let gap = find("# A\n\n| op | f32 | f16 |\n|---|---|---|\n| exp |  | 1 |\n", "exp");
        assert_eq!(markdown(&gap), "A:\n\n| f16 |\n| --- |\n| 1 |\n\n");
        assert_eq!(markdown(&found[..1]), "A:\n\n| f32 |\n| --- |\n| 2 |\n\n");
    }
}
