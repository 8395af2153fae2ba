//! The library: ops of every kind on views of every kind. A strided call must give what a call on contiguous copies
//! gives, bit for bit; writing to a view leaves what lies beside it; in place is no other result.

mod gradients;
mod layouts;
mod rows;
mod several;
mod special;
mod unary;

use crate::case::{Case, Outcome};

type Kind = fn(&mut Case) -> Outcome;

/// The kinds of a case; what has more ops comes more often.
const KINDS: [Kind; 25] = [
    unary::unary,
    unary::unary,
    unary::unary,
    unary::convert,
    unary::convert,
    unary::display,
    several::binary,
    several::binary,
    several::binary,
    several::binary,
    several::backward,
    several::backward,
    several::ternary,
    several::ternary,
    several::gated,
    several::wrong_arity,
    gradients::several,
    gradients::gated,
    special::dropout,
    special::generator,
    special::masked_fill,
    special::clamp,
    layouts::layouts,
    rows::rows,
    rows::rows,
];

pub(crate) fn run(case: &mut Case) -> Outcome {
    let kind = case.random.pick(&KINDS);
    kind(case)
}
