//! Ops of pairs of bytes on so many elements that the default is a table of all results, against the results of each
//! pair on the CPU.

use pointwise::{DType, Device, Operand, Result, Strategy, Stream, Tensor, TensorView, info, kernel::OpDef};
use pointwise_testkit::Random;

/// Ops and types whose calls of 2^25 elements take a table.
pub const OPS: [(&str, DType); 4] = [
    ("pow", DType::F8E4M3),
    ("remainder", DType::F8E5M2),
    ("gelu_and_mul", DType::F8E4M3),
    ("floor_divide", DType::I8),
];

const GUARD: u8 = 0xA5;
/// Not whole vectors, nor rounds of a grid.
const N: usize = (1 << 25) + 37;

type Outcome = std::result::Result<(), String>;

/// Runs the op with elements in front of the first aligned vector, over its first operand, with one element for all as
/// the second operand, and along rows.
///
/// # Errors
/// The fault, or the errors of the library, in words.
pub fn check(device: &Device, op: &str, dtype: DType) -> Outcome {
    let def = info::op(op).ok_or("no such op")?;
    let wrong = |error: pointwise::Error| error.to_string();
    let pairs = Pairs::new(def, dtype).map_err(wrong)?;
    let (a, b) = (bytes(N + 3, 1), bytes(N + 3, 2));
    pairs.flat(device, &a, &b).map_err(wrong)??;
    pairs.rows(device, &a, &b).map_err(wrong)?
}

/// Captures the op and replays it on a CUDA device while its table cannot be made, then with the table that a call in
/// between has made. Copies to the host by other threads would end the captures.
///
/// # Errors
/// The fault, or the errors of the library, in words.
pub fn check_captured(device: &Device, op: &str, dtype: DType) -> Outcome {
    let def = info::op(op).ok_or("no such op")?;
    let wrong = |error: pointwise::Error| error.to_string();
    let pairs = Pairs::new(def, dtype).map_err(wrong)?;
    let (a, b) = (bytes(1 << 16, 3), bytes(1 << 16, 4));
    pairs.captured(device, &a, &b).map_err(wrong)??;
    pairs.called(device, &a, &b).map_err(wrong)??;
    pairs.captured(device, &a, &b).map_err(wrong)?
}

fn bytes(n: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..n.div_ceil(8)).flat_map(|_| random.next_u64().to_le_bytes()).take(n).collect()
}

/// An op in one type, with what comes of each pair.
struct Pairs {
    def: &'static OpDef,
    dtype: DType,
    results: Vec<u8>,
}

impl Pairs {
    fn new(def: &'static OpDef, dtype: DType) -> Result<Pairs> {
        let codes: Vec<u8> = (0..=255).collect();
        let a = Tensor::from_bytes(&Device::cpu(), dtype, &codes, [256, 1])?;
        let b = Tensor::from_bytes(&Device::cpu(), dtype, &codes, [256])?;
        let results = def.gated_with(&[]).run_pair(&a, &b)?.to_bytes()?;
        Ok(Pairs { def, dtype, results })
    }

    fn of(&self, a: u8, b: u8) -> u8 {
        self.results[usize::from(a) * 256 + usize::from(b)]
    }

    /// The first element that is not what comes of its pair.
    fn judge(&self, what: &str, y: &[u8], pair: impl Fn(usize) -> (u8, u8)) -> Outcome {
        let is_wrong = |&(i, &y): &(usize, &u8)| {
            let (a, b) = pair(i);
            self.of(a, b) != y
        };
        match y.iter().enumerate().find(is_wrong) {
            None => Ok(()),
            Some((i, y)) => {
                let (a, b) = pair(i);
                Err(format!("{what}: element {i} of {a:#04x} and {b:#04x} is {y:#04x}, not {:#04x}", self.of(a, b)))
            }
        }
    }

    fn flat(&self, device: &Device, a: &[u8], b: &[u8]) -> Result<Outcome> {
        let kernel = self.def.gated_with(&[]);
        let of = |bytes: &[u8]| Tensor::from_bytes(device, self.dtype, bytes, [bytes.len()]);
        let (x, other) = (of(a)?, of(b)?);
        let (from, len) = (3, N - 3);
        let (x_part, other_part) = (x.view().narrow(0, from, len)?, other.view().narrow(0, from, len)?);
        let mut y = of(&vec![GUARD; N + 3])?;
        kernel.run_pair_into(x_part, other_part, y.view_mut()?.narrow(0, from, len)?)?;
        let got = y.to_bytes()?;
        let guards = got[..from].iter().chain(&got[from + len..]);
        if guards.into_iter().any(|&byte| byte != GUARD) {
            return Ok(Err("flat: wrote beside the result".to_owned()));
        }
        let pair = |i: usize| (a[from + i], b[from + i]);
        if let Err(what) = self.judge("flat", &got[from..from + len], pair) {
            return Ok(Err(what));
        }
        // One element for all, and over the first operand.
        let mut target = of(a)?;
        let alias = target.view();
        // SAFETY: the same memory as operand and result is what is tested; the tensor outlives both views.
        let source = unsafe {
            TensorView::from_raw_parts(device, alias.device_ptr(), self.dtype, *alias.shape(), alias.strides())
        }?;
        kernel.run_pair_into(source, other.view().narrow(0, 7, 1)?, &mut target)?;
        Ok(self.judge("in place", &target.to_bytes()?, |i| (a[i], b[7])))
    }

    /// The halves of rows, as a gated op has them, or two tensors of rows with gaps.
    fn rows(&self, device: &Device, a: &[u8], b: &[u8]) -> Result<Outcome> {
        let (rows, cols) = (N / 4096, 4096);
        let n = rows * cols;
        let halves: Vec<u8> = a[..n].chunks(cols).zip(b[..n].chunks(cols)).flat_map(|(a, b)| [a, b].concat()).collect();
        let x = Tensor::from_bytes(device, self.dtype, &halves, [rows, 2 * cols])?;
        let halves = [Operand::View(x.view().narrow(1, 0, cols)?), Operand::View(x.view().narrow(1, cols, cols)?)];
        let (one, is_one) = ([Operand::from(&x)], self.def.takes_halves());
        let y = self.def.kernel(&[]).run(if is_one { &one } else { &halves })?;
        Ok(self.judge("rows", &y[0].to_bytes()?, |i| (a[i], b[i])))
    }

    fn called(&self, device: &Device, a: &[u8], b: &[u8]) -> Result<Outcome> {
        let of = |bytes: &[u8]| Tensor::from_bytes(device, self.dtype, bytes, [bytes.len()]);
        let kernel = self.def.gated_with(&[]).strategy(Strategy::Table);
        let y = kernel.run_pair(&of(a)?, &of(b)?)?;
        Ok(self.judge("called", &y.to_bytes()?, |i| (a[i], b[i])))
    }

    fn captured(&self, device: &Device, a: &[u8], b: &[u8]) -> Result<Outcome> {
        let of = |bytes: &[u8]| Tensor::from_bytes(device, self.dtype, bytes, [bytes.len()]);
        let (x, other, mut y) = (of(a)?, of(b)?, Tensor::zeros(device, self.dtype, [a.len()])?);
        let stream = Stream::new(device)?;
        let kernel = self.def.gated_with(&[]).strategy(Strategy::Table).on(&stream);
        let operands = [Operand::from(&x), Operand::from(&other)];
        stream.capture(|_| kernel.run_pair_into(operands[0], operands[1], &mut y))?.launch(&stream)?;
        stream.synchronize()?;
        Ok(self.judge("captured", &y.to_bytes()?, |i| (a[i], b[i])))
    }
}
