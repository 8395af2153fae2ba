//! The ops that `#[op]` made in a package, against their own formulas at f64.

mod close;
mod rows;
mod slopes;
mod values;

use pointwise::info::declared_ops;
use pointwise::kernel::{At, Draw, Entry, OpDef};
use pointwise::{DType, Device, Number, Operand, Philox, Tensor};

use crate::{Error, params};
use close::Bound;
pub use rows::largest_error;
use values::{computed, decode, encode, sample, whole_range};

/// The source of random ops.
const RNG: Philox = Philox::new(42);

/// Checks every op that `#[op]` made in a package, as [`check_op`] does, on each of the devices:
///
/// ```no_run
/// // In a test of the package, with pointwise's feature `emulator`: `use my_package as _;` links the ops.
/// # #[cfg(any())]
/// let devices = pointwise::Device::for_tests(pointwise::embed::embedded())?;
/// # let devices = [pointwise::Device::cpu()];
/// pointwise_testkit::check_all(env!("CARGO_PKG_NAME"), &devices)?;
/// # Ok::<(), pointwise_testkit::Error>(())
/// ```
///
/// # Errors
/// The first result that is wrong; a call that fails; a package without ops; an op without kernels. Such an op is checked on
/// the CPU alone where nothing has kernels, since there is no compiler for GPU code, unless `POINTWISE_KERNELS=required`; and
/// with `POINTWISE_KERNELS=none`, which says that there are none.
pub fn check_all(package: &str, devices: &[Device]) -> Result<(), Error> {
    let ops = declared_ops(package);
    if ops.is_empty() {
        return Err(Error::Wrong(format!("{package} has no ops, or is not linked with this program")));
    }
    for def in ops {
        for def in std::iter::once(def).chain(def.backward) {
            for &dtype in def.info.types {
                has_kernel(first_entry(def, dtype)?)?;
            }
        }
        check_op(def, devices)?;
    }
    Ok(())
}

/// Checks an op that `#[op]` made, and its gradients, in every element type, with several parameters, on each of the
/// devices.
///
/// Every result is compared with the formula in f64 ([`OpDef::oracle`]): of numbers between -4 and 4 in several layouts,
/// and of numbers of the whole range, with infinities, NaN, the largest and the smallest. A result may be as far off as
/// the op states. Where terms cancel, the bound counts from the size of the terms. Where operands are so large or small
/// (2^64 and more, less than 2^-63) that a step leaves the normal numbers of f32, nothing is asked. The gradients are compared in f64 with the slopes
/// of the formula, by central differences, wherever it is smooth.
///
/// # Errors
/// The first result that is wrong; a call that fails; an op without kernels for a device that is not the CPU.
pub fn check_op(def: &'static OpDef, devices: &[Device]) -> Result<(), Error> {
    match () {
        () if def.info.is_of_rows() => rows::slopes(def)?,
        () if def.info.is_of_indices() => {}
        () => slopes::check(def)?,
    }
    for def in std::iter::once(def).chain(def.backward) {
        for &dtype in def.info.types {
            for device in devices {
                if can_check(device, first_entry(def, dtype)?)? {
                    match () {
                        () if def.info.is_of_rows() => rows::check(def, dtype, device)?,
                        () if def.info.is_of_indices() => check_indices(def, dtype, device)?,
                        () => check(def, dtype, device)?,
                    }
                }
            }
        }
    }
    Ok(())
}

/// One of the kernels for elements of a type: all are there, or none.
fn first_entry(def: &'static OpDef, dtype: DType) -> Result<&'static Entry, Error> {
    let first = def.entries(dtype)?.into_iter().next();
    first.ok_or_else(|| Error::Wrong(format!("{} of {dtype} has no kernels", def.info.name)))
}

/// True if an op without kernels is a fault: see [`check_all`].
fn kernels_are_required() -> bool {
    let said = std::env::var("POINTWISE_KERNELS").unwrap_or_default();
    said == "required" || said != "none" && !pointwise::embed::embedded().is_empty()
}

/// Fails if there is no kernel, and must be one.
fn has_kernel(entry: &Entry) -> Result<(), Error> {
    if entry.is_embedded() || !kernels_are_required() {
        return Ok(());
    }
    let (symbol, why) = (entry.symbol(), entry.note());
    Err(Error::Wrong(format!("no kernel {symbol}: {why}. For ops of the CPU alone, set POINTWISE_KERNELS=none")))
}

/// True if the device can run the op. Fails if it has no kernel for the device, and must have one.
fn can_check(device: &Device, entry: &Entry) -> Result<bool, Error> {
    if device.is_cpu() {
        return Ok(true);
    }
    has_kernel(entry)?;
    Ok(entry.is_embedded())
}

/// Planes of rows that are whole vectors, and of others.
fn check_indices(def: &'static OpDef, dtype: DType, device: &Device) -> Result<(), Error> {
    let info = &def.info;
    for set in params::several(info, DType::F32) {
        let Some(oracle) = def.index_oracle(dtype, &set)? else { return Ok(()) };
        let bound = Bound::new(info.accuracy, dtype);
        for [planes, rows, columns] in [[2, 5, 64], [1, 37, 19]] {
            let y = def.kernel(&set).generate(device, dtype, [planes, rows, columns])?;
            for (i, got) in decode(dtype, &y.to_bytes()?).into_iter().enumerate() {
                let at = [i / (rows * columns), i / columns % rows, i % columns].map(|index| index as u32);
                let exact = oracle.at(at);
                let why = if bound.holds(got, exact) { None } else { bound.wrong(got, exact, None, &[]) };
                if let Some(why) = why {
                    let (name, set) = (info.name, params::shown(info, &set));
                    let what = format!(
                        "{name} of {dtype} on {device}: [plane, row, column] {at:?} is {got:e}, not {exact:e}{why}{set}"
                    );
                    return Err(Error::Wrong(what));
                }
            }
        }
    }
    Ok(())
}

/// Runs of elements; broadcast rows and columns; a transposed operand; the whole range.
fn check(def: &'static OpDef, dtype: DType, device: &Device) -> Result<(), Error> {
    for set in params::several(&def.info, dtype) {
        let call = Call { def, dtype, device, set: &set };
        for (rows, columns) in [(1, 67), (5, 24), (3, 1)] {
            for turn in 0..=def.info.operands.len() {
                call.layout([rows, columns], turn)?;
            }
        }
        call.range()?;
        // A channel is a dimension of its own.
        if def.info.has_place() && def.info.channel_operands == 0 {
            call.planes([3, 5, 11])?;
        }
    }
    Ok(())
}

/// An operand's values, and where in it the element of a row and a column is.
struct Input {
    values: Vec<f64>,
    tensor: Tensor,
    strides: [usize; 2],
    /// True if the tensor is the transposed operand.
    is_turned: bool,
}

/// An op in a type, with parameters, on a device.
struct Call<'a> {
    def: &'static OpDef,
    dtype: DType,
    device: &'a Device,
    set: &'a [Number],
}

impl Call<'_> {
    /// A call on a layout. In `turn` 0 all operands lie like the result. In others, one is a row, the next a column, and the
    /// last is transposed.
    fn layout(&self, [rows, columns]: [usize; 2], turn: usize) -> Result<(), Error> {
        let info = &self.def.info;
        let mut inputs = Vec::new();
        // The first operand has all elements, so that the result does; what has one for each channel cannot.
        let whole = (0..info.operands.len()).find(|&k| !info.is_channel(k));
        for k in 0..info.operands.len() {
            let turned = (k + turn) % 4;
            let (shape, strides) = match turned {
                _ if info.is_channel(k) => (vec![columns], [0, 1]),
                1 if turn > 0 && Some(k) != whole => (vec![1, columns], [0, 1]),
                2 if turn > 0 && Some(k) != whole => (vec![rows, 1], [1, 0]),
                3 if turn > 0 => (vec![columns, rows], [1, rows]),
                _ => (vec![rows, columns], [columns, 1]),
            };
            let of = info.operand_type(k, self.dtype);
            let codes: Vec<f64> = (0..shape.iter().product()).map(|i| sample(i, k + turn * 31)).collect();
            let (bytes, values) = encode(of, &codes);
            let values = computed(info, k, values);
            let is_turned = shape == [columns, rows] && turn > 0 && turned == 3;
            let tensor = Tensor::from_bytes(self.device, of, &bytes, shape)?;
            inputs.push(Input { values, tensor, strides, is_turned });
        }
        let operands = inputs.iter().map(|input| {
            let view = input.tensor.view();
            if input.is_turned { view.transpose(0, 1).map(Operand::View) } else { Ok(Operand::View(view)) }
        });
        let operands = operands.collect::<pointwise::Result<Vec<_>>>()?;
        let what = format!("{rows} x {columns}, layout {turn}");
        self.compare(&what, &operands, |i| {
            let (row, column) = (i / columns, i % columns);
            inputs.iter().map(|input| input.values[row * input.strides[0] + column * input.strides[1]]).collect()
        })
    }

    /// A call on numbers of the whole range.
    fn range(&self) -> Result<(), Error> {
        let info = &self.def.info;
        let operands = whole_range(info, self.dtype);
        let of = |k: usize| info.operand_type(k, self.dtype);
        let values: Vec<Vec<f64>> =
            operands.iter().enumerate().map(|(k, bytes)| computed(info, k, decode(of(k), bytes))).collect();
        let n = values[0].len();
        // A channel of its own for each element.
        let tensors = operands.iter().enumerate().map(|(k, bytes)| {
            let shape = if info.is_channel(k) { vec![n] } else { vec![1, n] };
            Tensor::from_bytes(self.device, of(k), bytes, shape)
        });
        let tensors = tensors.collect::<pointwise::Result<Vec<_>>>()?;
        let operands: Vec<Operand<'_>> = tensors.iter().map(Operand::from).collect();
        self.compare("the whole range", &operands, |i| values.iter().map(|values| values[i]).collect())
    }

    /// A call on planes, whose elements lie one after another.
    fn planes(&self, shape: [usize; 3]) -> Result<(), Error> {
        let info = &self.def.info;
        let mut inputs = Vec::new();
        for k in 0..info.operands.len() {
            let of = info.operand_type(k, self.dtype);
            let codes: Vec<f64> = (0..shape.iter().product()).map(|i| sample(i, k)).collect();
            let (bytes, values) = encode(of, &codes);
            inputs.push((computed(info, k, values), Tensor::from_bytes(self.device, of, &bytes, shape)?));
        }
        let operands: Vec<Operand<'_>> = inputs.iter().map(|(_, tensor)| Operand::from(tensor)).collect();
        self.compare(&format!("planes of {shape:?}"), &operands, |i| {
            inputs.iter().map(|(values, _)| values[i]).collect()
        })
    }

    /// Compares the results of a call with the formula. `at` gives the operands of an element.
    fn compare(&self, what: &str, operands: &[Operand<'_>], at: impl Fn(usize) -> Vec<f64>) -> Result<(), Error> {
        let Call { def, dtype, device, set } = *self;
        let info = &def.info;
        let results = def.kernel(set).of_type(dtype).rng(RNG).run(operands)?;
        let Some(oracle) = def.oracle(dtype, set)? else { return Ok(()) };
        let draw = Draw { blocks: RNG.blocks(), ..Draw::of(info.random, results[0].shape()) };
        let got: Vec<Vec<f64>> = (0..results.len())
            .map(|k| Ok(decode(info.result_type(k, dtype), &results[k].to_bytes()?)))
            .collect::<pointwise::Result<_>>()?;
        for i in 0..got[0].len() {
            let x = at(i);
            let place = At::of(&draw, i as u64);
            for (k, exact) in oracle.at(&x, place).into_iter().enumerate() {
                let got = got[k][i];
                let bound = Bound::of(info, k, dtype);
                if bound.holds(got, exact) {
                    continue;
                }
                let terms = oracle.terms(&x, place).map(|terms| terms[k]);
                if let Some(why) = bound.wrong(got, exact, terms, &x) {
                    let (name, result, set) = (info.name, info.results[k], params::shown(info, set));
                    return Err(Error::Wrong(format!(
                        "{name} of {dtype} on {device}, {what}: {result}[{i}] of {x:?} is {got:e}, not {exact:e}{why}{set}"
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_ops_is_an_error() {
        let error = check_all("no such package", &[Device::cpu()]).unwrap_err();
        assert!(error.to_string().contains("no ops"));
    }
}
