//! Fused kernels on a device: their texts, what is loaded of them, and launches.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use pointwise_core::{Blocks, DType};

use super::body::Body;
use super::compose::{self, Bodies, SYMBOL, body_key};
use super::graph::{Arg, StepKind, unsupported};
use super::plan::{self, Tensors};
use super::{Fused, Program, Shape as Form, Variant};
use crate::Stream;
use crate::cuda::{self, Context, Grid, LoadedKernel};
use crate::error::{ErrorKind, Result};
use crate::kernel::{LaunchSettings, Rng};
use crate::shape::Shape;
use crate::tensor::{TensorView, TensorViewMut};
use pointwise_core::rows::WARP;

/// Returns the structure of a program as text, a step a line.
pub(super) fn key(program: &Program) -> String {
    let mut key = String::new();
    let graph = &program.graph;
    let operands: Vec<&str> = graph.operands.iter().map(|dtype| dtype.name()).collect();
    // Writing to a `String` does not fail.
    _ = writeln!(key, "operands: {}", operands.join(", "));
    for step in &graph.steps {
        let args = step.args.iter().map(|arg| match arg {
            Arg::Value(value) => format!("v{value}"),
            Arg::Word(word) => format!("w{word}"),
        });
        let args = args.collect::<Vec<_>>().join(", ");
        let dtype = step.dtype.name();
        _ = match step.kind {
            StepKind::Op { def, words } => {
                let with = if def.info.params.is_empty() { String::new() } else { format!(" with w{words}") };
                writeln!(key, "v{} = {}({args}){with} in {dtype}", step.first, def.info.name)
            }
            StepKind::Convert { to } if to == step.dtype => {
                writeln!(key, "v{} = stored({args}) in {dtype}", step.first)
            }
            StepKind::Convert { to } => writeln!(key, "v{} = {}({args}) from {dtype}", step.first, to.name()),
            StepKind::Len => writeln!(key, "v{} = row.len", step.first),
            StepKind::DropoutMask { draw, limit } => {
                writeln!(key, "v{} = dropout_mask({args}) with w{limit} from place {draw}", step.first)
            }
            StepKind::Reduce(reduction) => writeln!(key, "v{} = row.{}({args})", step.first, name(reduction)),
        };
    }
    let results: Vec<String> = program.results.iter().map(|value| format!("v{value}")).collect();
    _ = writeln!(key, "results: {}", results.join(", "));
    key
}

fn name(reduction: pointwise_core::rows::Reduction) -> String {
    format!("{reduction:?}").to_lowercase()
}

/// Identifies a program for the caches: ops of one name may be different ones.
fn identity(program: &Program) -> String {
    let mut identity = program.key.clone();
    for step in &program.graph.steps {
        if let Some((def, _)) = body_key(step) {
            _ = write!(identity, "{def:x} ");
        }
    }
    identity
}

/// Returns the text of a program's kernel.
pub(super) fn text(program: &Program, variant: &Variant, sm: u32) -> Result<String> {
    let mut bodies = Bodies::new();
    for step in &program.graph.steps {
        if let (StepKind::Op { def, .. }, Some(key)) = (step.kind, body_key(step))
            && !bodies.contains_key(&key)
        {
            bodies.insert(key, body(def, step.dtype, sm)?);
        }
    }
    Ok(compose::compose(program, variant, &bodies, sm))
}

/// A body by its op, its element type and the device that it is for.
type BodyKey = (usize, DType, u32);

/// Returns the body of an op, taken apart once a process.
fn body(def: &'static crate::kernel::OpDef, dtype: DType, sm: u32) -> Result<Arc<Body>> {
    static BODIES: OnceLock<Mutex<HashMap<BodyKey, Arc<Body>>>> = OnceLock::new();
    let key = (std::ptr::from_ref(def) as usize, dtype, sm);
    let known = BODIES.get_or_init(Mutex::default);
    if let Some(body) = lock(known).get(&key) {
        return Ok(Arc::clone(body));
    }
    let entry = def.body(dtype)?;
    let text = entry.ptx(sm)?;
    let body = Body::parse(&text, def.info.operands.len())
        .map_err(|why| ErrorKind::NoKernel { symbol: entry.symbol().to_owned(), why })?;
    Ok(Arc::clone(lock(known).entry(key).or_insert(Arc::new(body))))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a program's kernel on a device, loaded if it is not.
fn kernel(
    program: &Program,
    variant: &Variant,
    context: &'static Context,
    settings: &LaunchSettings,
) -> Result<Arc<LoadedKernel>> {
    let own = (context.slot, variant.clone());
    if let Some(kernel) = lock(&program.loaded).get(&own).and_then(Weak::upgrade) {
        return Ok(kernel);
    }
    let key = format!("{}{variant:?}", identity(program));
    let stream = settings.stream.as_ref().and_then(Stream::shared);
    let image = || {
        if stream.map_or(context.own(), Arc::as_ref).is_capturing(context).unwrap_or(false) {
            let what = "the first call of a fused kernel in a capture".to_owned();
            return Err(unsupported(what, "call it once before the capture, on tensors that lie likewise"));
        }
        let sm = context.info.sm;
        let mut text = text(program, variant, sm)?;
        text.push('\0');
        let (sm, ptx) = if sm >= 90 { (90, (7, 8)) } else { (80, (7, 0)) };
        Ok((text, sm, ptx))
    };
    let kernel = context.kernel(key, SYMBOL, stream, image)?;
    lock(&program.loaded).insert(own, Arc::downgrade(&kernel));
    Ok(kernel)
}

/// Runs a program on a device.
///
/// # Safety
/// The views are checked: of the program's types, on the context's device, results of the operands' common shape, which share memory
/// with an operand only if they are the same view. The results may be written. Places to draw from are checked.
pub(super) unsafe fn launch(
    fused: &Fused<'_>,
    context: &'static Context,
    operands: &[TensorView<'_>],
    results: &mut [TensorViewMut<'_>],
    shape: &Shape,
) -> Result<()> {
    let (program, settings) = (&*fused.program, &fused.settings);
    let views: Vec<TensorView<'_>> = results.iter().map(TensorViewMut::as_view).collect();
    let tensors = Tensors::new(program, views.iter().chain(operands).copied(), shape);
    let mut launches = plan::launches(program, &tensors, shape)?;
    for launch in &mut launches {
        launch.variant.placed.extend(fused.rngs.iter().map(|rng| rng.view().is_some()));
    }
    // SAFETY: the tensors of places are checked, and held for the stream below.
    let places: Vec<Blocks> = fused.rngs.iter().map(|rng| unsafe { rng.blocks() }).collect();
    let mut kernels = Vec::with_capacity(launches.len());
    for launch in &launches {
        kernels.push(kernel(program, &launch.variant, context, settings)?);
    }
    let held = settings.hold(context, operands.iter().chain(fused.rngs.iter().filter_map(Rng::view)), &views)?;
    for (launch, kernel) in launches.iter().zip(kernels) {
        let run = |function| {
            launch.parts(program, |start, items, steps| {
                if items == 0 {
                    return Ok(());
                }
                let addresses: Vec<u64> = (0..program.tensors())
                    .map(|k| (tensors.at[k] as i64 + program.tensor(k).offset(start[k])) as u64)
                    .collect();
                let mut params: Vec<*mut c_void> =
                    Vec::with_capacity(addresses.len() + program.graph.words.len() + places.len() + 3);
                let pointer = |value: *const c_void| value.cast_mut();
                params.extend(addresses.iter().map(|address| pointer(std::ptr::from_ref(address).cast())));
                params.extend(program.graph.words.iter().map(|word| pointer(std::ptr::from_ref(word).cast())));
                params.extend(places.iter().map(|place| pointer(std::ptr::from_ref(place).cast())));
                params.push(pointer(std::ptr::from_ref(&items).cast()));
                params.push(pointer(std::ptr::from_ref(&launch.len).cast()));
                params.push(pointer(steps.as_ptr().cast()));
                let threads = launch.variant.block();
                let blocks = match launch.variant.shape {
                    Form::Elements => items.div_ceil(threads),
                    Form::Rows { threads: WARP, .. } => items.div_ceil(4),
                    Form::Rows { .. } => items,
                };
                let grid = Grid { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0 };
                // SAFETY: the parameters are the kernel's, in order; it stays within the walk of the tensors; the caller's contract.
                unsafe { cuda::launch_grid(function, grid, &held, &mut params) }
            })
        };
        kernel.launch(&held, run)?;
    }
    Ok(())
}
