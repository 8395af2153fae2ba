//! Chains of calls: each call reads what the call before wrote, or writes what it read. Kernels are launched before the
//! kernels in front of them have ended, so the kernels themselves keep the order. The chains run in one stream, in two,
//! and in a graph, and are compared with the same calls on the CPU, which run one after another.

use pointwise::{Device, Result, Stream, Tensor, kernel::BinaryKernel, kernels};

/// Elements of the large tensors: a launch of many blocks, then of some, of one, and of fewer than a vector's elements.
const SIZES: [usize; 4] = [(1 << 22) + 5, 70_001, 300, 3];
/// Elements of the small tensor, the last ones of a large tensor: its calls follow the large tensors' calls.
const FEW: usize = 3;
/// Repetitions of the calls.
const ROUNDS: i32 = 40;

/// The streams of the calls.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// The device's own stream.
    Own,
    /// One stream.
    One,
    /// CUDA's legacy default stream.
    Legacy,
    /// Two streams, which wait for each other.
    Two,
    /// Like [`Way::Two`], captured and replayed.
    Graph,
}

/// The bytes of each tensor that calls write.
type Bytes = Vec<Vec<u8>>;

/// The tensors of the calls.
struct State {
    x: Tensor,
    y: Tensor,
    few: Tensor,
    one: Tensor,
}

impl State {
    fn new(device: &Device, n: usize) -> Result<State> {
        let numbers: Vec<i32> = (0..n as i32).map(|i| i.wrapping_mul(0x9e37)).collect();
        Ok(State {
            x: Tensor::from_slice(device, &numbers, [n])?,
            y: Tensor::zeros(device, pointwise::DType::I32, [n])?,
            few: Tensor::full(device, 7, [FEW])?,
            one: Tensor::full(device, 1, [1])?,
        })
    }

    /// Each tensor is read right after it was written, and written right after it was read, by calls of other sizes.
    fn round(&mut self, [first, second]: [&Stream; 2]) -> Result<()> {
        let State { x, y, few, one } = self;
        let last = x.numel() - FEW;
        let add = || on(kernels::add(1), first);
        add().run_into(&*x, &*one, &mut *y)?;
        apart(first, second)?;
        on(kernels::mul(), second).run_inplace(&mut *few, y.view().narrow(0, last, FEW)?)?;
        apart(second, first)?;
        add().run_inplace(x.view_mut()?.narrow(0, last, FEW)?, &*few)?;
        add().run_inplace(y.view_mut()?.narrow(0, 0, FEW)?, x.view().narrow(0, last, FEW)?)?;
        add().run_inplace(&mut *x, &*y)?;
        add().run_into(&*few, y.view().narrow(0, 0, FEW)?, x.view_mut()?.narrow(0, 0, FEW)?)
    }

    fn bytes(&self) -> Result<Bytes> {
        [&self.x, &self.y, &self.few].map(Tensor::to_bytes).into_iter().collect()
    }
}

/// The kernel on a stream: on its device's own as calls are that name none.
fn on(kernel: BinaryKernel, stream: &Stream) -> BinaryKernel {
    if stream.is_own() { kernel } else { kernel.on(stream) }
}

/// Makes the second stream wait for the first, if it is another.
fn apart(first: &Stream, second: &Stream) -> Result<()> {
    if first.raw() == second.raw() { Ok(()) } else { second.wait_for(first) }
}

/// Runs all sizes, one way.
///
/// # Errors
/// The fault, or the errors of the library, in words.
pub fn check(device: &Device, way: Way) -> std::result::Result<(), String> {
    // The emulator runs one block after another: more blocks show nothing.
    for n in SIZES.into_iter().skip(usize::from(device.is_emulated())) {
        let (got, expected) = run(device, way, n).map_err(|error| error.to_string())?;
        for (name, (got, expected)) in ["x", "y", "few"].iter().zip(got.iter().zip(&expected)) {
            let wrong = got.chunks(4).zip(expected.chunks(4)).position(|(got, expected)| got != expected);
            if let Some(i) = wrong {
                return Err(format!("{n} elements: {name}[{i}] is not what the calls make of it one after another"));
            }
        }
    }
    Ok(())
}

fn run(device: &Device, way: Way, n: usize) -> Result<(Bytes, Bytes)> {
    let (mut state, mut expected) = (State::new(device, n)?, State::new(&Device::cpu(), n)?);
    let none = Device::cpu().stream();
    rounds(&mut expected, [&none, &none], ROUNDS)?;
    calls(device, way, &mut state)?;
    Ok((state.bytes()?, expected.bytes()?))
}

fn rounds(state: &mut State, streams: [&Stream; 2], count: i32) -> Result<()> {
    (0..count).try_for_each(|_| state.round(streams))
}

fn calls(device: &Device, way: Way, state: &mut State) -> Result<()> {
    let first = match way {
        Way::Own => device.stream(),
        // SAFETY: null is a stream of every context.
        Way::Legacy => unsafe { Stream::from_raw(device, std::ptr::null_mut())? },
        Way::One | Way::Two | Way::Graph => Stream::new(device)?,
    };
    match way {
        Way::Own | Way::One | Way::Legacy => rounds(state, [&first, &first], ROUNDS)?,
        Way::Two => rounds(state, [&first, &Stream::new(device)?], ROUNDS)?,
        Way::Graph => {
            const CAPTURED: i32 = 8;
            let second = Stream::new(device)?;
            let mut graph = first.capture(|first| rounds(state, [first, &second], CAPTURED))?;
            for _ in 0..ROUNDS / CAPTURED {
                graph.launch(&first)?;
            }
        }
    }
    first.synchronize()
}
