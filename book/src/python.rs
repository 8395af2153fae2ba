//! The functions of the Python package, as its type stubs have them: a test of the package keeps these true.

use anyhow::{Context as _, Result};

const STUBS: &str = include_str!("../../python/pointwise/__init__.pyi");

/// The call of an op in Python, with the names and defaults of its arguments.
///
/// # Errors
/// The package has no such function.
pub(crate) fn call(name: &str) -> Result<String> {
    let arguments = arguments(name).with_context(|| format!("the Python package has no function {name}"))?;
    Ok(format!("pointwise.{name}({})", arguments.join(", ")))
}

/// True if there is a function that writes to its first operand.
pub(crate) fn has_inplace(name: &str) -> bool {
    arguments(&format!("{name}_")).is_some()
}

fn arguments(name: &str) -> Option<Vec<String>> {
    let head = format!("def {name}(");
    let line = STUBS.lines().find_map(|line| line.strip_prefix(&head))?;
    let (arguments, _) = line.rsplit_once(") -> ")?;
    Some(split(arguments).into_iter().map(untyped).collect())
}

/// `name: type = default` as `name=default`.
fn untyped(argument: &str) -> String {
    let (name, kind) = argument.split_once(": ").unwrap_or((argument, ""));
    match kind.rsplit_once(" = ") {
        Some((_, default)) => format!("{name}={default}"),
        None => name.to_owned(),
    }
}

/// Parts between commas that are in no brackets.
fn split(arguments: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_usize, 0);
    for (at, letter) in arguments.char_indices() {
        match letter {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(arguments[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(arguments[from..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_those_of_the_stubs() {
        assert_eq!(call("gelu").unwrap(), "pointwise.gelu(input, *, approximate='none', out=None)");
        assert_eq!(call("add_backward").unwrap(), "pointwise.add_backward(grad, alpha=1, *, out=None)");
        assert!(call("no_such_op").is_err());
        assert!(has_inplace("silu") && !has_inplace("where"));
    }
}
