//! Calls whose tensors all have the call's dimensions: calls in f64, and calls with more dimensions than pointwise's views
//! have. Dimensions are merged, and the rest is walked.

use pointwise::info::Domain;
use pointwise::kernel::Rng;
use pointwise::{Device, Number, Operand, Stream};

use crate::abi::Element;
use crate::layout::{self, Item};
use crate::operand::{Known, number};
use crate::registry::{Call, OpSpec};
use crate::results::shape_of_call;
use crate::tensor::Raw;
use crate::view::{RANK, say, view, view_mut};

/// A call's tensors.
pub(crate) struct Aligned {
    /// The dimensions.
    pub(crate) sizes: Vec<i64>,
    /// Operands, then results; the halves of a tensor are two.
    pub(crate) items: Vec<Item>,
    /// The operands: which item one is, or a number.
    pub(crate) operands: Vec<Result<usize, Number>>,
    /// The number of items that are operands.
    pub(crate) tensors: usize,
}

/// The op, device and settings of a call.
pub(crate) struct With<'a> {
    pub(crate) op: &'a OpSpec,
    pub(crate) element: Element,
    pub(crate) device: &'a Device,
    pub(crate) stream: Option<&'a Stream>,
    pub(crate) params: &'a [Number],
    pub(crate) rng: Rng<'a>,
}

impl Aligned {
    /// Brings tensors to the call's dimensions.
    ///
    /// # Errors
    /// Dimensions that do not go together.
    pub(crate) fn new(op: &OpSpec, known: &[Known<'_>], results: &[Raw<'_>]) -> Result<Aligned, String> {
        if op.group != 0 {
            return Err(format!(
                "{}: groups are in tensors of at most {} dimensions, which are not float64: flatten all but the last, such as \
                 x.flatten(0, -2), or convert the operands",
                op.name,
                RANK - 1
            ));
        }
        let sizes = shape_of_call(op, known)?;
        if op.results.iter().zip(results).any(|(spec, raw)| spec.weight.is_some() && raw.sizes != sizes) {
            return Err(format!(
                "{}: sums over rows of more than {RANK} dimensions: flatten all but the last, such as x.flatten(0, -2)",
                op.name
            ));
        }
        let mut aligned = Aligned { sizes, items: Vec::new(), operands: Vec::new(), tensors: 0 };
        let item = |raw: &Raw<'_>, strides: Vec<i64>| Item { data: raw.data, element: raw.element, strides };
        for (known, spec) in known.iter().zip(&op.operands) {
            let raw = match known {
                Known::Number(value) => {
                    aligned.operands.push(Err(*value));
                    continue;
                }
                Known::Tensor(raw) => raw,
            };
            let strides = match spec.domain {
                Domain::Halves => {
                    for half in halves(op, &aligned.sizes, raw)? {
                        aligned.push_operand(half);
                    }
                    continue;
                }
                Domain::Channel => channel(op, &aligned.sizes, raw)?,
                Domain::Row => layout::expand(&aligned.sizes, &behind(raw.sizes, 1), &behind(raw.strides, 0))?,
                Domain::Elements => layout::expand(&aligned.sizes, raw.sizes, raw.strides)?,
            };
            aligned.push_operand(item(raw, strides));
        }
        for (raw, spec) in results.iter().zip(&op.results) {
            let (sizes, strides) = match spec.domain {
                Domain::Halves => {
                    aligned.items.extend(halves(op, &aligned.sizes, raw)?);
                    continue;
                }
                Domain::Row => (layout::once_a_row(&aligned.sizes).0, behind(raw.strides, 0)),
                Domain::Elements | Domain::Channel => (aligned.sizes.clone(), raw.strides.to_vec()),
            };
            if raw.sizes != sizes {
                return Err(format!(
                    "{}: the result is of sizes {sizes:?}, the tensor for it {:?}",
                    op.name, raw.sizes
                ));
            }
            aligned.items.push(item(raw, strides));
        }
        match op.of_rows {
            true => layout::merge_rows(&mut aligned.sizes, &mut aligned.items),
            false if op.knows_dimensions() => {}
            false => layout::merge(&mut aligned.sizes, &mut aligned.items),
        }
        Ok(aligned)
    }

    fn push_operand(&mut self, item: Item) {
        self.operands.push(Ok(self.items.len()));
        self.items.push(item);
        self.tensors += 1;
    }

    /// True if there is nothing to compute. A row of no elements may have a result.
    pub(crate) fn is_empty(&self, op: &OpSpec) -> bool {
        let counted = self.sizes.len().saturating_sub(usize::from(op.of_rows));
        self.sizes[..counted].contains(&0)
    }

    /// Runs the op by pointwise's views, of which f64 has none.
    ///
    /// # Errors
    /// Errors of the op.
    ///
    /// # Safety
    /// The tensors are alive, of the call's device, and nobody writes to them meanwhile but
    /// in the order of the call's stream.
    pub(crate) unsafe fn run(mut self, with: &With<'_>) -> Result<(), String> {
        let With { op, element, device, stream, params, rng } = *with;
        if op.has_place() && self.sizes.len() > RANK {
            return Err(format!("{} of more than {RANK} dimensions: make its operands contiguous", op.name));
        }
        let (operands, tensors) = (&self.operands, self.tensors);
        layout::each(RANK, &self.sizes, &mut self.items, &mut |sizes, items| {
            let rank = |domain| sizes.len() - usize::from(domain == Some(Domain::Row));
            let mut given = Vec::with_capacity(operands.len());
            for (k, operand) in operands.iter().enumerate() {
                given.push(match operand {
                    Ok(at) => {
                        let (item, rank) = (&items[*at], rank(op.operands.get(k).map(|spec| spec.domain)));
                        // SAFETY: the caller's promise.
                        Operand::View(unsafe {
                            view(device, item.data, item.element, &sizes[..rank], &item.strides[..rank])
                        }?)
                    }
                    Err(value) => Operand::Number(number(*value, element)),
                });
            }
            let mut targets = Vec::with_capacity(items.len() - tensors);
            for (k, item) in items[tensors..].iter().enumerate() {
                let spec = op.results.get(k);
                let (element, rank) =
                    (spec.map_or(element, |spec| spec.element(element)), rank(spec.map(|spec| spec.domain)));
                // SAFETY: the caller's promise.
                targets.push(unsafe { view_mut(device, item.data, element, &sizes[..rank], &item.strides[..rank]) }?);
            }
            let call = Call { operands: &given, params, rng, stream };
            op.call(&call, &mut targets, None).map_err(say)
        })
    }
}

/// Sizes or strides with those of one dimension more behind them.
fn behind(of: &[i64], last: i64) -> Vec<i64> {
    of.iter().copied().chain([last]).collect()
}

/// Returns the halves of a tensor's last dimension, which is twice the last of `sizes`.
fn halves(op: &OpSpec, sizes: &[i64], raw: &Raw<'_>) -> Result<[Item; 2], String> {
    let fits = match (sizes.split_last(), raw.sizes.split_last()) {
        (Some((last, rest)), Some((own, own_rest))) => own_rest == rest && *own == 2 * last,
        _ => false,
    };
    if !fits {
        return Err(format!("{}: {:?} is not twice {sizes:?} along the last dimension", op.name, raw.sizes));
    }
    let size = raw.element.size();
    let first = Item { data: raw.data, element: raw.element, strides: raw.strides.to_vec() };
    let step = sizes.last().copied().unwrap_or(0) * raw.strides.last().copied().unwrap_or(0);
    let data = raw.data.wrapping_offset(step as isize * size as isize);
    Ok([first.clone(), Item { data, ..first }])
}

/// Strides of what has an element for each entry of dimension 1, or one for all.
fn channel(op: &OpSpec, sizes: &[i64], raw: &Raw<'_>) -> Result<Vec<i64>, String> {
    let mut strides = vec![0; sizes.len()];
    let dim = usize::from(sizes.len() > 1);
    match (raw.sizes, sizes.get(dim)) {
        _ if raw.sizes.iter().product::<i64>() == 1 => {}
        ([own], Some(size)) if own == size => strides[dim] = raw.strides[0],
        _ => {
            return Err(format!(
                "{}: an operand of sizes {:?} beside sizes {sizes:?}, which has one element, or one for each of dimension 1",
                op.name, raw.sizes
            ));
        }
    }
    Ok(strides)
}
