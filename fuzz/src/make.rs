//! Makes shapes, numbers, tensors and views of a case.

use pointwise::{DType, Device, Number, Tensor, TensorView, TensorViewMut, info::OpInfo};
use pointwise_testkit::inputs;

use crate::case::{Case, must};
use crate::random::Random;

/// The types whose gradients there are, and which rotary embedding takes.
pub(crate) const WIDE_FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// Numbers where parameters behave differently: f64's own, and the edges of the narrow types.
const SPECIAL_FLOATS: [f64; 19] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1e300,
    -1e300,
    5e-324,
    65504.0,
    65520.0,
    448.0,
    464.0,
    3.5e38,
    0.5,
    -0.5,
    2.0,
    3.0,
    -1.0,
    1.0,
];

pub(crate) fn dtype(random: &mut Random) -> DType {
    random.pick(&DType::ALL)
}

/// Mostly floats.
pub(crate) fn float(random: &mut Random) -> DType {
    if random.once_in(10) {
        return dtype(random);
    }
    random.pick(&DType::FLOATS)
}

/// A parameter or a scalar operand, also one that makes no sense.
pub(crate) fn number(random: &mut Random) -> Number {
    match random.below(12) {
        0 => Number::Default,
        1 => Number::Bool(random.once_in(2)),
        2 => Number::Int(random.word() as i64),
        3 => Number::Int(random.pick(inputs::INTEGERS)),
        4 | 5 => Number::Int(random.below(9) as i64 - 4),
        6 => Number::Float(f64::from_bits(random.word())),
        7 => Number::Float(random.pick(&SPECIAL_FLOATS)),
        _ => Number::Float(random.word() as i64 as f64 / (1_u64 << 60) as f64),
    }
}

/// Parameters of an op; now and then more than it takes.
pub(crate) fn params(random: &mut Random, info: &OpInfo) -> [Number; 4] {
    if random.once_in(2) {
        return [Number::Default; 4];
    }
    let count = if random.once_in(20) { 4 } else { info.params.len() };
    std::array::from_fn(|k| if k < count { number(random) } else { Number::Default })
}

/// A shape of up to 8 dimensions and about `most` elements, now and then of none.
pub(crate) fn shape(random: &mut Random, most: usize) -> Vec<usize> {
    let rank = random.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8]);
    let mut numel = 1;
    let mut dim = |random: &mut Random| {
        let dim = match random.below(20) {
            0 => 0,
            1..=4 => 1,
            5 => random.pick(&[16, 17, 33, 64]),
            _ => 1 + random.below(7),
        };
        let dim = if numel * dim > most { 1 } else { dim };
        numel *= dim.max(1);
        dim
    };
    (0..rank).map(|_| dim(random)).collect()
}

/// The most elements of a case's tensors: few, or enough for several threads; few on an emulated device.
pub(crate) fn most(case: &mut Case) -> usize {
    match case.device.is_emulated() {
        true => 300,
        false if case.random.once_in(30) => 200_000,
        false => 3000,
    }
}

/// A shape that broadcasts to `full`.
pub(crate) fn narrower(random: &mut Random, full: &[usize]) -> Vec<usize> {
    let skip = if random.once_in(3) { random.below(full.len() + 1) } else { 0 };
    full[skip..].iter().map(|&dim| if random.once_in(4) { 1 } else { dim }).collect()
}

/// The bytes of `n` elements, strange ones among them.
pub(crate) fn bytes(random: &mut Random, dtype: DType, n: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(n * dtype.size());
    for _ in 0..n {
        match dtype {
            DType::Bool => bytes.push((random.word() & 1) as u8),
            DType::F32 => {
                let bits = match random.below(8) {
                    0 => {
                        let sign = (random.below(2) as u32) << 31;
                        random.pick(inputs::SPECIAL).to_bits() ^ sign
                    }
                    1 => random.word() as u32,
                    2 => (random.below(41) as f32 - 20.0).to_bits(),
                    _ => (random.word() as i32 as f32 / (1_u32 << 28) as f32).to_bits(),
                };
                bytes.extend_from_slice(&bits.to_ne_bytes());
            }
            _ => {
                let small = dtype.is_int() && random.once_in(3);
                let word = if small { (random.below(13) as i64 - 6) as u64 } else { random.word() };
                bytes.extend_from_slice(&word.to_ne_bytes()[..dtype.size()]);
            }
        }
    }
    bytes
}

/// A tensor of random elements.
pub(crate) fn tensor(case: &mut Case, dtype: DType, shape: &[usize]) -> Result<Tensor, String> {
    let bytes = bytes(&mut case.random, dtype, shape.iter().product());
    must("a tensor for the case", Tensor::from_bytes(&case.device, dtype, &bytes, shape))
}

/// The place of a view in a larger tensor: permuted, with a margin, at every other place, or repeated.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    shape: Vec<usize>,
    /// The shape before any element is repeated.
    own: Vec<usize>,
    /// The larger tensor's shape.
    stored: Vec<usize>,
    order: Vec<usize>,
    starts: Vec<usize>,
    steps: Vec<usize>,
}

impl Place {
    /// A place to read `shape` from.
    pub(crate) fn to_read(random: &mut Random, shape: &[usize]) -> Place {
        let repeats = random.once_in(3);
        let repeated: Vec<bool> = shape.iter().map(|_| repeats && random.once_in(3)).collect();
        let own: Vec<usize> = shape.iter().zip(&repeated).map(|(&dim, &once)| if once { 1 } else { dim }).collect();
        Place { shape: shape.to_vec(), ..Place::of(random, &own) }
    }

    /// A place to write `shape` to: every element once.
    pub(crate) fn to_write(random: &mut Random, shape: &[usize]) -> Place {
        Place::of(random, shape)
    }

    /// A place to write `shape` to, or to read it from, whose last dimension is contiguous.
    pub(crate) fn lanes(random: &mut Random, shape: &[usize]) -> Place {
        let Some((last, rest)) = shape.split_last() else { return Place::of(random, shape) };
        let mut place = Place::of(random, rest);
        let (start, behind) = if random.once_in(2) { (random.below(9), random.below(9)) } else { (0, 0) };
        place.order.push(rest.len());
        place.stored.push(start + last + behind);
        place.starts.push(start);
        place.steps.push(1);
        place.shape.push(*last);
        place.own.push(*last);
        place
    }

    /// A contiguous place, with a margin before and behind.
    pub(crate) fn rows(random: &mut Random, shape: &[usize]) -> Place {
        let (mut starts, mut stored) = (vec![0; shape.len()], shape.to_vec());
        if let [first, ..] = &mut stored[..] {
            starts[0] = random.below(4);
            *first += starts[0] + random.below(4);
        }
        let order = (0..shape.len()).collect();
        Place { shape: shape.to_vec(), own: shape.to_vec(), stored, order, starts, steps: vec![1; shape.len()] }
    }

    fn of(random: &mut Random, shape: &[usize]) -> Place {
        let (permuted, margins) = (random.once_in(2), random.once_in(2));
        let order = if permuted { random.order(shape.len()) } else { (0..shape.len()).collect() };
        let (mut starts, mut steps, mut larger) = (Vec::new(), Vec::new(), shape.to_vec());
        for d in 0..shape.len() {
            // A dimension without elements may grow, too.
            let size: usize = larger.iter().map(|n| n.max(&1)).product();
            let (start, step, behind) = match margins && size < 1 << 18 {
                true => (random.below(3), 1 + random.below(2), random.below(2)),
                false => (0, 1, 0),
            };
            starts.push(start);
            steps.push(step);
            larger[d] = start + shape[d] * step + behind;
        }
        let stored = order.iter().map(|&d| larger[d]).collect();
        Place { shape: shape.to_vec(), own: shape.to_vec(), stored, order, starts, steps }
    }

    /// A tensor that has this place.
    pub(crate) fn tensor(&self, case: &mut Case, dtype: DType) -> Result<Tensor, String> {
        tensor(case, dtype, &self.stored)
    }

    /// The view of `tensor`, which [`Place::tensor`] made.
    pub(crate) fn view<'a>(&self, tensor: &'a Tensor) -> Result<TensorView<'a>, String> {
        let mut view = must("permute", tensor.view().permute(&self.inverse()))?;
        for d in 0..self.shape.len() {
            let (start, len) = self.range(d);
            view = must("narrow", view.narrow(d, start, len))?;
            view = must("step", view.step(d, self.steps[d]))?;
        }
        must("expand", view.expand(self.shape.as_slice()))
    }

    /// The view of `tensor` to write to.
    pub(crate) fn view_mut<'a>(&self, tensor: &'a mut Tensor) -> Result<TensorViewMut<'a>, String> {
        let mut view = must("permute", must("a view", tensor.view_mut())?.permute(&self.inverse()))?;
        for d in 0..self.shape.len() {
            let (start, len) = self.range(d);
            view = must("narrow", view.narrow(d, start, len))?;
            view = must("step", view.step(d, self.steps[d]))?;
        }
        Ok(view)
    }

    /// The start of a dimension in the larger tensor, and its length there.
    fn range(&self, d: usize) -> (usize, usize) {
        (self.starts[d], self.own[d].checked_sub(1).map_or(0, |last| last * self.steps[d] + 1))
    }

    fn inverse(&self) -> Vec<usize> {
        let mut inverse = vec![0; self.order.len()];
        for (at, &d) in self.order.iter().enumerate() {
            inverse[d] = at;
        }
        inverse
    }
}

/// A view by a few steps of any kind.
pub(crate) fn view<'a>(random: &mut Random, view: TensorView<'a>) -> TensorView<'a> {
    let mut view = view;
    for _ in 0..random.below(6) {
        let rank = view.shape().rank();
        let d = random.below(rank);
        let next = match random.below(9) {
            0 => view.transpose(d, random.below(rank)),
            1 if rank > 0 => {
                let start = random.below(view.shape()[d] + 1);
                let len = random.below(view.shape()[d] - start + 1);
                view.narrow(d, start, len)
            }
            2 => view.step(d, 1 + random.below(4)),
            3 if rank > 0 => view.select(d, random.below(view.shape()[d])),
            4 => view.unsqueeze(random.below(rank + 1)),
            5 => view.squeeze(d),
            6 => {
                let mut shape = view.shape().to_vec();
                for dim in &mut shape {
                    if *dim == 1 && random.once_in(2) {
                        *dim = 1 + random.below(5);
                    }
                }
                if random.once_in(2) {
                    shape.insert(0, 1 + random.below(3));
                }
                view.expand(shape.as_slice())
            }
            7 => view.permute(&random.order(rank)),
            _ => view.reshape([view.numel()]),
        };
        if let Ok(next) = next
            && next.numel() <= 1 << 18
        {
            view = next;
        }
    }
    view
}

/// A tensor of zeros, of the device.
pub(crate) fn zeros(device: &Device, dtype: DType, shape: &[usize]) -> Result<Tensor, String> {
    must("a tensor for the case", Tensor::zeros(device, dtype, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_without_elements_is_in_no_large_tensor() {
        for case in 0..2000 {
            let place = Place::to_write(&mut Random::of(1, case), &[7, 7, 7, 7, 7, 7, 0]);
            assert!(place.stored.iter().product::<usize>() < 1 << 22, "{:?}", place.stored);
        }
    }
}
