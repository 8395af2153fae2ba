//! Gradients against the slopes of their formula.

use pointwise::kernel::{At, OpDef, Oracle};

use crate::{Error, Random, params};

/// Points of each set of parameters.
const POINTS: usize = 96;

/// Checks that the gradients of an op are the slopes of its formula, both in f64, wherever it is smooth.
///
/// # Errors
/// The first gradient that is not; a parameter that the op does not take.
pub(super) fn check(def: &'static OpDef) -> Result<(), Error> {
    let Some(backward) = def.backward else { return Ok(()) };
    let Some(&dtype) = def.info.types.iter().find(|dtype| dtype.is_float()) else { return Ok(()) };
    for set in params::several(&def.info, dtype) {
        let (forward, gradients) = (def.oracle(dtype, &set)?, backward.oracle(dtype, &set)?);
        let (Some(forward), Some(gradients)) = (forward, gradients) else { return Ok(()) };
        let mut random = Random::new(11);
        for i in 0..POINTS {
            point(def, backward, &forward, &gradients, &mut random, i)
                .map_err(|what| Error::Wrong(format!("{what}{}", params::shown(&def.info, &set))))?;
        }
    }
    Ok(())
}

/// One point.
fn point(
    def: &OpDef,
    backward: &OpDef,
    forward: &Oracle,
    gradients: &Oracle,
    random: &mut Random,
    i: usize,
) -> Result<(), String> {
    let info = &def.info;
    let is_float = |k: usize| info.operand_has_gradient(k);
    // Far from the numbers where formulas turn.
    let mut number = || {
        let magnitude = (0.05 + 3.9 * random.unit()) * if i % 4 == 3 { 8.0 } else { 1.0 };
        if random.unit() < 0.5 && i % 4 != 2 { -magnitude } else { magnitude }
    };
    let x: Vec<f64> = (0..info.operands.len())
        .map(|k| match number() {
            x if info.is_bool(k) => f64::from(u8::from(x > 0.0)),
            // A whole number, in any type.
            x if !is_float(k) => x.abs().round(),
            x => x,
        })
        .collect();
    let results: Vec<usize> = (0..info.results.len()).filter(|&k| info.result_has_gradient(k)).collect();
    let grads: Vec<f64> = results.iter().map(|_| 0.5 + random.unit()).collect();
    let (word, place) = (random.next_u64(), random.next_u64());
    let element = At::new([word as u32, (word >> 32) as u32], [0, 8, 16].map(|by| (place >> by) as u32 % 8));
    let value = |at: usize, of: f64| {
        let mut x = x.clone();
        x[at] = of;
        let y = forward.at(&x, element);
        results.iter().zip(&grads).map(|(&k, grad)| grad * y[k]).sum::<f64>()
    };
    // The gradients read the operands and results that they name.
    let y = forward.at(&x, element);
    let read = |name: &&str| {
        let at = |names: &[&str]| names.iter().position(|own| own == name);
        at(info.operands).map(|k| x[k]).or_else(|| at(info.results).map(|k| y[k]))
    };
    let saved = backward.info.operands.iter().skip(grads.len()).filter_map(read);
    let got = gradients.at(&grads.iter().copied().chain(saved).collect::<Vec<_>>(), element);
    for (name, (at, got)) in backward.info.results.iter().zip((0..x.len()).filter(|&k| is_float(k)).zip(got)) {
        let scale = value(at, x[at]).abs();
        let slope = |h: f64| {
            let f = |steps: f64| value(at, x[at] + steps * h);
            // A difference of fourth order.
            (8.0 * (f(1.0) - f(-1.0)) - (f(2.0) - f(-2.0))) / (12.0 * h)
        };
        let h = x[at].abs().min(1.0) / 1024.0;
        let (near, far) = (slope(h), slope(2.0 * h));
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (1.0 + b.abs()) + 1e-9 * scale;
        // Not where it jumps, turns, or is not defined.
        if close(near, far) && !close(got, near) {
            let shown: Vec<String> = x.iter().map(|x| format!("{x:.4}")).collect();
            return Err(format!(
                "{name} of {} at ({}) is {got:.6} in f64, but the formula's slope there is {near:.6}: the function of \
                 `grad = ..` is not the gradient, or the formula takes a number out of T (`to_f64`), which has no slope",
                info.name,
                shown.join(", "),
            ));
        }
    }
    Ok(())
}
