//! Random graphs as fused kernels: each step is compared with its op in f64, on what the step was given. That is known, since each
//! step's value is stored.

use pointwise::fusion::{Graph, MAX_FUSED_DRAWS, MAX_FUSED_RESULTS, Value};
use pointwise::kernel::{OpDef, Rng};
use pointwise::{DType, Device, Philox, Tensor, TensorView, info, ops};
use pointwise_core::Element;

use crate::{Error, Op, Random, calls, judge, with_element};

/// A graph of random ops of the family on random operands, which broadcast to a matrix.
#[derive(Debug)]
pub struct RandomGraph {
    dtype: DType,
    graph: Graph,
    /// Rows and columns of each operand.
    shapes: Vec<[usize; 2]>,
    /// The elements of each operand.
    data: Vec<Vec<u8>>,
    /// The operands, then the results of the steps.
    values: Vec<(Value, DType)>,
    /// The places that masks of dropout draw from.
    rngs: Vec<Philox>,
    steps: Vec<Step>,
    /// Rows and columns of each result.
    size: [usize; 2],
}

/// A step. Its result is the next value.
#[derive(Debug)]
enum Step {
    /// An op, and its arguments as values or numbers.
    Op { def: &'static OpDef, args: Vec<Result<usize, f64>> },
    /// A value, converted to another type and back.
    Cast { at: usize, through: DType },
    /// A mask of dropout with a probability, from a place.
    Mask { p: f64, place: Philox },
}

/// Returns the ops that graphs are made of: with one result, and without random words and channels.
fn choices(dtype: DType) -> Vec<&'static OpDef> {
    let is_plain = |def: &&OpDef| {
        let info = &def.info;
        info.supports(dtype) && !info.is_random() && info.results.len() == 1 && info.channel_operands == 0
    };
    info::all().filter(is_plain).collect()
}

impl RandomGraph {
    /// Makes a graph of up to 20 steps and 5 operands of a type of floats or integers that is not fp8.
    ///
    /// # Errors
    /// Fails if the graph refuses a step.
    pub fn new(dtype: DType, random: &mut Random) -> Result<RandomGraph, Error> {
        let choices = choices(dtype);
        let (count, steps) = (1 + random.below(5), 1 + random.below(20));
        let (rows, columns) = (1 + random.below(7), 1 + random.below(40));
        let shapes: Vec<[usize; 2]> = (0..count)
            .map(|k| match random.below(5) {
                _ if k == 0 => [rows, columns],
                0 => [1, columns],
                1 => [rows, 1],
                2 => [1, 1],
                _ => [rows, columns],
            })
            .collect();
        let mut graph = Graph::new();
        let (mut values, mut rngs) = (Vec::new(), Vec::new());
        // Which values have an element for each of the result.
        let mut is_whole: Vec<bool> = shapes.iter().map(|shape| *shape == [rows, columns]).collect();
        for _ in 0..count {
            values.push((graph.operand(dtype, false)?, dtype));
        }
        let mut made = Vec::new();
        for _ in 0..steps {
            if random.below(10) == 0 {
                let at = random.below(values.len());
                let (value, own) = values[at];
                let choices = casts(own);
                let through = choices[random.below(choices.len())];
                let cast = graph.to_dtype(value, through)?;
                values.push((graph.to_dtype(cast, own)?, own));
                is_whole.push(is_whole[at]);
                made.push(Step::Cast { at, through });
                continue;
            }
            if rngs.len() < MAX_FUSED_DRAWS && random.below(12) == 0 {
                let at = random.below(values.len());
                if is_whole[at] {
                    let p = [0.0, 0.1, 0.5, 0.9, 1.0][random.below(5)];
                    let place = Philox::new(random.next_u64()).at(random.next_u64());
                    values.push((graph.dropout_mask(values[at].0, p)?, DType::Bool));
                    is_whole.push(true);
                    made.push(Step::Mask { p, place });
                    rngs.push(place);
                    continue;
                }
            }
            let def = choices[random.below(choices.len())];
            let args = arguments(def, dtype, &values, random);
            let mut own = Vec::new();
            for (k, arg) in args.iter().enumerate() {
                own.push(match arg {
                    Ok(at) => values[*at].0,
                    Err(_) if def.info.is_bool(k) => graph.number(true),
                    Err(number) if dtype.is_float() => graph.number(*number),
                    Err(number) => graph.number(*number as i64),
                });
            }
            let [result] = graph.op(def, &own, &[])?[..] else { continue };
            let result = graph.stored(result)?;
            values.push((result, graph.dtype(result)?));
            is_whole.push(args.iter().any(|arg| arg.is_ok_and(|at| is_whole[at])));
            made.push(Step::Op { def, args });
        }
        let data = shapes.iter().map(|[r, c]| bytes_of(dtype, (0..r * c).map(|_| random.normal() * 2.0))).collect();
        Ok(RandomGraph { dtype, graph, shapes, data, values, rngs, steps: made, size: [rows, columns] })
    }

    /// Runs the graph on devices and compares each step with its op in f64.
    ///
    /// # Errors
    /// The first step that is wrong; a call that fails.
    pub fn check(&self, devices: &[Device]) -> Result<(), Error> {
        for device in devices {
            let mut tensors = Vec::new();
            for (bytes, shape) in self.data.iter().zip(&self.shapes) {
                tensors.push(Tensor::from_bytes(device, self.dtype, bytes, *shape)?);
            }
            let views: Vec<TensorView<'_>> = tensors.iter().map(Tensor::view).collect();
            // The values of all steps, some at a time: the graph is the same.
            let mut all = Vec::new();
            for some in self.values[self.shapes.len()..].chunks(MAX_FUSED_RESULTS) {
                let results: Vec<Value> = some.iter().map(|(value, _)| *value).collect();
                let rngs = self.rngs.iter().map(|place| Rng::from(*place));
                for y in self.graph.clone().fuse(&results)?.rngs(rngs).run(&views)? {
                    all.push(y.to_bytes()?);
                }
            }
            self.check_steps(device, &all)?;
        }
        Ok(())
    }

    /// Returns the elements of a value: of an operand, broadcast, or of a result.
    fn elements(&self, at: usize, results: &[Vec<u8>]) -> Vec<u8> {
        let ([rows, columns], size) = (self.size, self.dtype.size());
        let Some([r, c]) = self.shapes.get(at) else { return results[at - self.shapes.len()].clone() };
        let index = |i: usize| (i / columns % r) * c + i % columns % c;
        (0..rows * columns).flat_map(|i| &self.data[at][size * index(i)..][..size]).copied().collect()
    }

    fn check_steps(&self, device: &Device, results: &[Vec<u8>]) -> Result<(), Error> {
        let (dtype, n) = (self.dtype, self.size[0] * self.size[1]);
        for (k, step) in self.steps.iter().enumerate() {
            let (def, args) = match step {
                Step::Op { def, args } => (def, args),
                Step::Cast { at, through } => {
                    let own = self.values[*at].1;
                    let x = Tensor::from_bytes(&Device::cpu(), own, &self.elements(*at, results), [n])?;
                    let wanted = x.view().to_dtype(*through)?.view().to_dtype(own)?.to_bytes()?;
                    if let Some(at) = judge::same_bits(own, &wanted, &results[k]) {
                        let what = format!("step {k}, {own} through {through}, on {device}: element {at}");
                        return Err(Error::Wrong(what));
                    }
                    continue;
                }
                Step::Mask { p, place } => {
                    let x = Tensor::zeros(&Device::cpu(), DType::F32, [n])?;
                    let wanted = ops::dropout_with_mask(&x, *p, *place)?.1.to_bytes()?;
                    if let Some(at) = judge::same_bits(DType::Bool, &wanted, &results[k]) {
                        return Err(Error::Wrong(format!("step {k}, a mask of {p}, on {device}: element {at}")));
                    }
                    continue;
                }
            };
            let info = &def.info;
            let of = |(k, arg): (usize, &Result<usize, f64>)| match arg {
                Ok(at) => self.elements(*at, results),
                Err(_) if info.is_bool(k) => vec![1; n],
                Err(number) => bytes_of(dtype, (0..n).map(|_| *number)),
            };
            let operands: Vec<Vec<u8>> = args.iter().enumerate().map(of).collect();
            let result = self.values[self.shapes.len() + k].1;
            for report in Op::from(*def).judge(dtype, &[], &operands, std::slice::from_ref(&results[k]))? {
                if !report.keeps(calls::accuracy(info), result, false) {
                    let name = info.name;
                    return Err(Error::Wrong(format!("step {k} of {dtype}, {name}, on {device}: {report}")));
                }
            }
        }
        Ok(())
    }
}

/// Returns the types that a value of a type is converted through. Large whole numbers are rounded twice on their way to a narrow float.
fn casts(dtype: DType) -> Vec<DType> {
    let is_large = matches!(dtype, DType::I32 | DType::I64);
    let fits = |to: &DType| *to != dtype && !(is_large && to.is_float() && *to != DType::F32);
    DType::ALL.into_iter().filter(fits).collect()
}

/// Chooses the arguments of a step.
fn arguments(def: &OpDef, dtype: DType, values: &[(Value, DType)], random: &mut Random) -> Vec<Result<usize, f64>> {
    let mut args = Vec::new();
    for k in 0..def.info.operands.len() {
        let wanted = def.info.operand_type(k, dtype);
        let fitting: Vec<usize> = (0..values.len()).filter(|&at| values[at].1 == wanted).collect();
        args.push(match fitting.len() {
            0 => Err(1.0),
            // Numbers alone have no type.
            _ if k > 0 && wanted == dtype && !def.info.properties.moves && random.below(6) == 0 => {
                let numbers = if dtype.is_float() { [0.5, 2.0, -1.0, 3.25] } else { [1.0, 2.0, 7.0, 3.0] };
                Err(numbers[random.below(4)])
            }
            n => Ok(fitting[random.below(n)]),
        });
    }
    args
}

/// Returns numbers as elements of a type.
fn bytes_of(dtype: DType, numbers: impl Iterator<Item = f64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    with_element!(dtype, E => for number in numbers {
        bytes.extend_from_slice(judge::as_bytes(&<E as Element>::from_f64(number)));
    });
    bytes
}
