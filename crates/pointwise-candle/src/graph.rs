//! Results as nodes of candle's graph.
//!
//! candle's graph has custom ops of one result and at most three operands. The result of a call is computed before its node
//! is made, so that a node only hands it over, and only operands that candle tracks count. With one result and at most
//! three such operands, one node serves the call. Otherwise a chain of *tokens*, tensors of one element, ties the call to
//! its operands, and each result is a node on the last token. When candle walks back, the results leave their gradients with
//! the call, the last token computes the gradients of all operands in one pass, and each token hands over the gradients of
//! its own operands.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use candle_core::{
    CpuStorage, CudaStorage, CustomOp1, CustomOp2, CustomOp3, Layout, MetalStorage, Result, Shape, Storage, Tensor,
};

use crate::call::{Call, Made, detached, forward};
use crate::memory::{NO_METAL, error};
use crate::queue::Queue;

/// The operands of a custom op of candle's, at most.
const OPERANDS: usize = 3;

/// Runs a call, and returns its results as nodes of candle's graph.
///
/// # Errors
/// Fails as [`forward`] does, and where a token cannot be allocated.
pub(crate) fn call(call: impl Call) -> Result<Vec<Tensor>> {
    let made = forward(&call)?;
    attach(Arc::new(call), made)
}

/// Ties results to the operands that candle tracks.
///
/// # Errors
/// Fails where a token cannot be allocated.
fn attach(call: Arc<dyn Call>, made: Vec<Made>) -> Result<Vec<Tensor>> {
    let is_tracked = |k: &usize| call.operands()[*k].tensor().is_some_and(|x| x.track_op() && x.dtype().is_float());
    let tracked: Vec<usize> = (0..call.operands().len()).filter(is_tracked).collect();
    if tracked.is_empty() {
        return Ok(made.into_iter().map(detached).collect());
    }
    let nodes = (0..made.len()).filter(|&at| !call.is_kept(at)).count();
    if nodes == 1 && tracked.len() <= OPERANDS {
        return whole(&call, &tracked, made);
    }
    let tape = Arc::new(Tape { call, saved: OnceLock::new(), passes: Mutex::default() });
    let mut token: Option<Tensor> = None;
    let mut rest = &tracked[..];
    while !rest.is_empty() {
        let (own, after) = rest.split_at(rest.len().min(OPERANDS - usize::from(token.is_some())));
        let mut operands: Vec<Tensor> = token.iter().cloned().collect();
        operands.extend(tensors(&*tape.call, own));
        let role = Role::Token { tape: tape.clone(), own: own.to_vec(), is_first: token.is_none() };
        token = Some(apply(Node { role, made: Mutex::new(Some(blank(&operands[0])?)) }, &operands)?);
        rest = after;
    }
    let token: Vec<Tensor> = token.into_iter().collect();
    let each = made.into_iter().enumerate().map(|(at, made)| match tape.call.is_kept(at) {
        true => Ok(detached(made)),
        false => apply(Node { role: Role::Result { tape: tape.clone(), at }, made: Mutex::new(Some(made)) }, &token),
    });
    let results: Vec<Tensor> = each.collect::<Result<_>>()?;
    // Without their nodes, which hold the tape.
    let saved = results.iter().enumerate().map(|(at, y)| tape.call.is_saved(at).then(|| y.detach()));
    tape.saved.get_or_init(|| saved.collect());
    Ok(results)
}

/// Makes one node of a call with one result, beside those that it keeps.
fn whole(call: &Arc<dyn Call>, tracked: &[usize], made: Vec<Made>) -> Result<Vec<Tensor>> {
    let (mut saved, mut node) = (Vec::with_capacity(made.len()), None);
    for (at, made) in made.into_iter().enumerate() {
        match call.is_kept(at) {
            true => saved.push(Some(detached(made))),
            false => {
                node = Some((at, made));
                saved.push(None);
            }
        }
    }
    let (at, made) = node.ok_or_else(|| error(format!("{} gave no result; please report this", call.name())))?;
    let mut results = saved.clone();
    let role = Role::Whole { call: call.clone(), tracked: tracked.to_vec(), at, saved };
    results[at] = Some(apply(Node { role, made: Mutex::new(Some(made)) }, &tensors(&**call, tracked))?);
    Ok(results.into_iter().flatten().collect())
}

fn tensors(call: &dyn Call, which: &[usize]) -> Vec<Tensor> {
    which.iter().filter_map(|&k| call.operands()[k].tensor()).cloned().collect()
}

/// Allocates a token's element on the device of a tensor.
fn blank(beside: &Tensor) -> Result<Made> {
    let one = pointwise::Shape::new(&[1]).map_err(error)?;
    Ok((Queue::of(beside.device())?.zero()?, one))
}

fn apply(node: Node, operands: &[Tensor]) -> Result<Tensor> {
    match operands {
        [a] => a.apply_op1(node),
        [a, b] => a.apply_op2(b, node),
        [a, b, c] => a.apply_op3(b, c, node),
        _ => Err(error(format!("a node of {} operands; please report this", operands.len()))),
    }
}

/// A call of several nodes, and what each walk back has brought so far.
struct Tape {
    call: Arc<dyn Call>,
    /// Results that the gradients read.
    saved: OnceLock<Vec<Option<Tensor>>>,
    /// A walk runs on one thread from its first node to its last.
    passes: Mutex<HashMap<ThreadId, Pass>>,
}

/// A walk back, as far as it has come.
#[derive(Default)]
struct Pass {
    results: Vec<Option<Tensor>>,
    grads: Vec<Option<Tensor>>,
    /// The gradients of the operands, once they are computed.
    gradients: Option<Vec<Option<Tensor>>>,
}

impl Tape {
    fn passes(&self) -> MutexGuard<'_, HashMap<ThreadId, Pass>> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the gradient of a result.
    fn bring(&self, at: usize, result: &Tensor, grad: &Tensor) {
        let mut passes = self.passes();
        let pass = passes.entry(thread::current().id()).or_default();
        if pass.gradients.is_some() {
            // A walk that an error ended.
            *pass = Pass::default();
        }
        let len = pass.grads.len().max(at + 1);
        pass.grads.resize(len, None);
        pass.results.resize(len, None);
        (pass.grads[at], pass.results[at]) = (Some(grad.clone()), Some(result.detach()));
    }

    /// Returns the gradients of some operands, and of all computes them first. `is_last` ends the walk.
    fn take(&self, own: &[usize], is_last: bool) -> Result<Vec<Option<Tensor>>> {
        let thread = thread::current().id();
        // Taken out, so that no lock is held while kernels run, and none is left where they fail.
        let mut pass = self.passes().remove(&thread).unwrap_or_default();
        let mut gradients = match pass.gradients.take() {
            Some(gradients) => gradients,
            None => {
                let saved = self.saved.get().map_or(&[][..], Vec::as_slice);
                let mut results = pass.results;
                results.resize(results.len().max(saved.len()), None);
                for (result, saved) in results.iter_mut().zip(saved) {
                    *result = result.take().or_else(|| saved.clone());
                }
                self.call.gradients(&results, &pass.grads)?
            }
        };
        let taken = own.iter().map(|&k| gradients.get_mut(k).and_then(Option::take)).collect();
        if !is_last {
            self.passes().insert(thread, Pass { gradients: Some(gradients), ..Pass::default() });
        }
        Ok(taken)
    }
}

/// A node of candle's graph, and what it hands over.
struct Node {
    role: Role,
    made: Mutex<Option<Made>>,
}

enum Role {
    /// The one result of a call, at a place among those that it keeps, on its tracked operands.
    Whole { call: Arc<dyn Call>, tracked: Vec<usize>, at: usize, saved: Vec<Option<Tensor>> },
    /// A token on an earlier one, unless it is the first, and on operands.
    Token { tape: Arc<Tape>, own: Vec<usize>, is_first: bool },
    /// A result on the last token.
    Result { tape: Arc<Tape>, at: usize },
}

impl Node {
    fn name(&self) -> &'static str {
        match &self.role {
            Role::Whole { call, .. } => call.name(),
            Role::Token { tape, .. } | Role::Result { tape, .. } => tape.call.name(),
        }
    }

    /// Hands the result over.
    fn take(&self) -> Result<(Storage, Shape)> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (storage, shape) =
            made.ok_or_else(|| error(format!("{} runs once for a node of the graph", self.name())))?;
        Ok((storage, Shape::from(shape.dims())))
    }

    fn cpu(&self) -> Result<(CpuStorage, Shape)> {
        match self.take()? {
            (Storage::Cpu(storage), shape) => Ok((storage, shape)),
            _ => Err(self.elsewhere()),
        }
    }

    fn cuda(&self) -> Result<(CudaStorage, Shape)> {
        match self.take()? {
            (Storage::Cuda(storage), shape) => Ok((storage, shape)),
            _ => Err(self.elsewhere()),
        }
    }

    fn metal(&self) -> Result<(MetalStorage, Shape)> {
        Err(error(NO_METAL))
    }

    fn elsewhere(&self) -> candle_core::Error {
        error(format!("the operands of {} are on different devices: move them to one (to_device)", self.name()))
    }

    /// Returns the gradients of the node's operands. candle wants one for each that it tracks.
    fn gradients(&self, first: &Tensor, result: &Tensor, grad: &Tensor) -> Result<Vec<Option<Tensor>>> {
        match &self.role {
            Role::Whole { call, tracked, at, saved } => {
                let (mut results, mut grads) = (saved.clone(), vec![None; saved.len()]);
                (results[*at], grads[*at]) = (Some(result.detach()), Some(grad.clone()));
                let all = call.gradients(&results, &grads)?;
                Ok(tracked.iter().map(|&k| all.get(k).cloned().flatten()).collect())
            }
            Role::Result { tape, at } => {
                tape.bring(*at, result, grad);
                // A token's element is 0, and so is its gradient.
                Ok(vec![Some(first.detach())])
            }
            Role::Token { tape, own, is_first } => {
                let earlier = (!is_first).then(|| Some(first.detach()));
                Ok(earlier.into_iter().chain(tape.take(own, *is_first)?).collect())
            }
        }
    }
}

/// Implements a custom op of candle's for its number of operands, named in turn.
macro_rules! custom_op {
    ($op:ident, $($x:ident)*, |$gradients:ident| $given:expr, $returns:ty) => {
        impl $op for Node {
            fn name(&self) -> &'static str {
                self.name()
            }

            fn cpu_fwd(&self, $($x: &CpuStorage, _: &Layout),*) -> Result<(CpuStorage, Shape)> {
                let _ = ($($x),*);
                self.cpu()
            }

            fn cuda_fwd(&self, $($x: &CudaStorage, _: &Layout),*) -> Result<(CudaStorage, Shape)> {
                let _ = ($($x),*);
                self.cuda()
            }

            fn metal_fwd(&self, $($x: &MetalStorage, _: &Layout),*) -> Result<(MetalStorage, Shape)> {
                let _ = ($($x),*);
                self.metal()
            }

            fn bwd(&self, $($x: &Tensor,)* result: &Tensor, grad: &Tensor) -> Result<$returns> {
                let (first, ..) = ($($x,)*);
                let mut $gradients = self.gradients(first, result, grad)?.into_iter();
                Ok($given)
            }
        }
    };
}

custom_op!(CustomOp1, a, |g| g.next().flatten(), Option<Tensor>);
custom_op!(CustomOp2, a b, |g| (g.next().flatten(), g.next().flatten()), (Option<Tensor>, Option<Tensor>));
custom_op!(
    CustomOp3,
    a b c,
    |g| (g.next().flatten(), g.next().flatten(), g.next().flatten()),
    (Option<Tensor>, Option<Tensor>, Option<Tensor>)
);
