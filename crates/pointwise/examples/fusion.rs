//! Formulas that become one kernel when the program runs, dropout among them, and a kernel with its gradient.

use pointwise::fusion::{Graph, Lazy, eval_all};
use pointwise::{DType, Device, Philox, Result, Tensor, info};

fn main() -> Result<()> {
    let device = Device::best()?;
    let tensor = |scale: f32| -> Result<Tensor> {
        let values: Vec<f32> = (0..4 * 64).map(|i| (i * 31 % 17) as f32 * scale - 1.0).collect();
        Tensor::from_slice(&device, &values, [4, 64])
    };
    let (gate, up, residual) = (tensor(0.125)?, tensor(0.25)?, tensor(0.0625)?);
    let weight = Tensor::full(&device, 1.0_f32, [64])?;

    let y = (gate.lazy().silu() * &up + &residual).eval()?;
    println!("the gate: {:?}", y.shape());

    let (x, rng) = (&up, Philox::new(42));
    let y = (x.lazy().gelu().dropout(0.1, rng) + &residual).eval()?;
    println!("with dropout: {:?}", y.shape());

    let sum = y.lazy() + &residual;
    let norm = sum.rms_norm(&weight, 1e-6);
    let both = eval_all([&norm, &sum])?;
    println!("norm and sum: {:?} {:?}", both[0].shape(), both[1].shape());
    println!("{}", norm.plan()?);

    let mut graph = Graph::new();
    let (a, b) = (graph.operand(DType::F32, false)?, graph.operand(DType::F32, false)?);
    let op = |name: &str| info::op(name).unwrap_or_else(|| panic!("no op {name}"));
    let silu = graph.op(op("silu"), &[a], &[])?[0];
    let product = graph.op(op("mul"), &[silu, b], &[])?[0];
    let fused = graph.fuse(&[product])?;
    let backward = fused.backward()?;
    let grad = Tensor::full(&device, 1.0_f32, [4, 64])?;
    let gradients = backward.run(&[grad.view(), gate.view(), up.view()])?;
    println!("{} gradients of {:?}", gradients.len(), gradients[0].shape());
    Ok(())
}
