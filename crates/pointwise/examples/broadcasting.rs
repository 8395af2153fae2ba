//! Operands of different shapes and types, numbers as operands, and operators: PyTorch's rules.

use pointwise::prelude::*;

fn main() -> Result<()> {
    let device = Device::best()?;
    let x = Tensor::from_slice(&device, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    let row = Tensor::from_slice(&device, &[10.0_f32, 20.0, 30.0], [3])?;
    let column = Tensor::from_slice(&device, &[100.0_f32, 200.0], [2, 1])?;

    println!("x + row = {}", (&x + &row)?);
    println!("row + column, [3] and [2, 1] to [2, 3] = {}", (&row + &column)?);
    println!("2 x - 1 = {}", (&(2.0 * &x)? - 1.0)?);
    println!("x > 3 = {}", ops::gt(&x, 3.0)?);
    println!("where(x > 3, x, row) = {}", ops::where_cond(&ops::gt(&x, 3.0)?, &x, &row)?);
    println!("clamp(x, min = 2) = {}", ops::clamp(&x, 2.0, None)?);

    // Types are promoted as in PyTorch: int32 and float16 meet in float16, a number changes no type of its own kind.
    let counts = Tensor::from_slice(&device, &[1, 2, 3], [3])?;
    let halves = ops::to_dtype(&row, DType::F16)?;
    println!("i32 + f16 is {}", (&counts + &halves)?.dtype());
    println!("i32 + 1 is {}, i32 + 0.5 is {}", (&counts + 1)?.dtype(), (&counts + 0.5)?.dtype());

    // A broadcast view repeats elements without a copy; an op reads it as it is.
    println!("expanded: {}", ops::neg(row.expand([2, 3])?)?);
    Ok(())
}
