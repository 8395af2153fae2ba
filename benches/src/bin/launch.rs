//! Times a call on 1,024 elements on the host, beside a bare `cuLaunchKernel` of the same kernel: `launch [--rounds
//! R]`. Prints medians over rounds of 500 calls each, with the device idle before a round.

use std::ffi::{CString, c_void};
use std::time::Instant;

use benches::{median, random};
use cudarc::driver::sys;
use pointwise::{DType, Device, Tensor, kernels, ops};

const CALLS: usize = 500;
const N: usize = 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = match std::env::args().skip_while(|argument| argument != "--rounds").nth(1) {
        Some(rounds) => rounds.parse()?,
        None => 41,
    };
    let device = Device::cuda(0)?;
    let x = random(&device, DType::F32, N)?;
    let mut y = Tensor::empty(&device, DType::F32, [N])?;
    let bare = Bare::load(&device, "formula_silu_f32_flat")?;
    let kernel = kernels::silu();
    let stream = pointwise::Stream::new(&device)?;
    let on_stream = kernels::silu().on(&stream);

    let mut samples: [Vec<f64>; 5] = Default::default();
    for _ in 0..rounds {
        samples[0].push(time(&device, || bare.launch(&device, &x, &mut y))?);
        samples[1].push(time(&device, || ops::silu_into(&x, &mut y))?);
        samples[2].push(time(&device, || kernel.run_into(&x, &mut y))?);
        samples[3].push(time(&device, || on_stream.run_into(&x, &mut y))?);
        samples[4].push(time(&device, || ops::silu(&x).map(drop))?);
    }
    let labels =
        ["bare cuLaunchKernel", "ops::silu_into", "kernel.run_into", "kernel.on(stream).run_into", "ops::silu"];
    let medians = samples.map(median);
    println!("# {}: host microseconds a call, {N} f32", device.info().ok_or("no device information")?.name);
    for (label, value) in labels.iter().zip(medians) {
        println!("{label:28} {value:7.3} us  {:.3} of the bare launch", value / medians[0]);
    }
    Ok(())
}

/// Microseconds a call.
fn time(device: &Device, mut call: impl FnMut() -> pointwise::Result<()>) -> pointwise::Result<f64> {
    device.synchronize()?;
    call()?;
    device.synchronize()?;
    let start = Instant::now();
    for _ in 0..CALLS {
        call()?;
    }
    let elapsed = start.elapsed();
    device.synchronize()?;
    Ok(elapsed.as_secs_f64() * 1e6 / CALLS as f64)
}

/// A kernel loaded and launched with the driver's functions alone.
struct Bare {
    function: sys::CUfunction,
}

impl Bare {
    fn load(device: &Device, symbol: &str) -> Result<Bare, Box<dyn std::error::Error>> {
        let sm = device.info().ok_or("no device information")?.sm;
        let kernels = pointwise::embed::embedded();
        let ptx = CString::new(kernels.ptx(symbol, sm).ok_or("no such kernel for the device")?)?;
        let name = CString::new(symbol)?;
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the context is current (a tensor was just made), the text ends in a NUL, the handles are live.
        unsafe {
            sys::cuModuleLoadData(&mut module, ptx.as_ptr().cast()).result()?;
            sys::cuModuleGetFunction(&mut function, module, name.as_ptr()).result()?;
        }
        Ok(Bare { function })
    }

    fn launch(&self, device: &Device, x: &Tensor, y: &mut Tensor) -> pointwise::Result<()> {
        let (mut target, mut source, mut n) = (y.device_ptr(), x.device_ptr(), N as u64);
        let (mut head, mut mode, mut number) = (0_u32, 0_u32, 0_u64);
        let mut params: [*mut c_void; 6] = [
            (&raw mut target).cast(),
            (&raw mut source).cast(),
            (&raw mut n).cast(),
            (&raw mut head).cast(),
            (&raw mut mode).cast(),
            (&raw mut number).cast(),
        ];
        // SAFETY: the parameters are those of a flat entry of one operand, the tensors hold N f32, one block serves 256
        // vectors of 4.
        let code = unsafe {
            sys::cuLaunchKernel(
                self.function,
                1,
                1,
                1,
                256,
                1,
                1,
                0,
                device.stream().raw().cast(),
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        assert_eq!(code, sys::CUresult::CUDA_SUCCESS, "the bare launch failed");
        Ok(())
    }
}
