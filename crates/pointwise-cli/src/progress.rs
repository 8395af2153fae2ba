//! Progress on a terminal, nothing elsewhere.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Less work than this is done before a person could read a bar.
const LONG: u64 = 64 << 20;

/// A bar of `bytes`, labelled with what is done.
pub(crate) fn of_bytes(what: &'static str, bytes: u64) -> ProgressBar {
    if bytes < LONG {
        return ProgressBar::hidden();
    }
    bar(what, bytes, "{msg} [{bar:30}] {bytes}/{total_bytes} {eta}")
}

/// A bar of `steps`. Hidden where the lines on the standard output show the progress.
#[must_use]
pub fn of_steps(what: &'static str, steps: u64) -> ProgressBar {
    if io::stdout().is_terminal() {
        return ProgressBar::hidden();
    }
    bar(what, steps, "{msg} [{bar:30}] {pos}/{len}")
}

fn bar(what: &'static str, length: u64, template: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    // indicatif's own style serves where the template has a fault.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_message(what)
}
