//! The calls on the ops' pages, compiled. `POINTWISE_BLESS=1 cargo test -p book` writes this file.

use pointwise::prelude::*;

#[allow(dead_code)]
fn page_exp(x: Tensor) -> Result<()> {
    ops::exp(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_log(x: Tensor) -> Result<()> {
    ops::log(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_sqrt(x: Tensor) -> Result<()> {
    ops::sqrt(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_rsqrt(x: Tensor) -> Result<()> {
    ops::rsqrt(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_abs(x: Tensor) -> Result<()> {
    ops::abs(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_neg(x: Tensor) -> Result<()> {
    ops::neg(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_reciprocal(x: Tensor) -> Result<()> {
    ops::reciprocal(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_sign(x: Tensor) -> Result<()> {
    ops::sign(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_sin(x: Tensor) -> Result<()> {
    ops::sin(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_cos(x: Tensor) -> Result<()> {
    ops::cos(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_floor(x: Tensor) -> Result<()> {
    ops::floor(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_ceil(x: Tensor) -> Result<()> {
    ops::ceil(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_round(x: Tensor) -> Result<()> {
    ops::round(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_round_decimals(x: Tensor) -> Result<()> {
    ops::round_decimals(&x, 0)?;
    Ok(())
}

#[allow(dead_code)]
fn page_trunc(x: Tensor) -> Result<()> {
    ops::trunc(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_erf(x: Tensor) -> Result<()> {
    ops::erf(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_log1p(x: Tensor) -> Result<()> {
    ops::log1p(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_expm1(x: Tensor) -> Result<()> {
    ops::expm1(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_relu(x: Tensor) -> Result<()> {
    ops::relu(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_gelu(x: Tensor) -> Result<()> {
    ops::gelu(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_gelu_tanh(x: Tensor) -> Result<()> {
    ops::gelu_tanh(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_silu(x: Tensor) -> Result<()> {
    ops::silu(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_sigmoid(x: Tensor) -> Result<()> {
    ops::sigmoid(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_tanh(x: Tensor) -> Result<()> {
    ops::tanh(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_leaky_relu(x: Tensor) -> Result<()> {
    ops::leaky_relu(&x, 0.01)?;
    Ok(())
}

#[allow(dead_code)]
fn page_elu(x: Tensor) -> Result<()> {
    ops::elu(&x, 1)?;
    Ok(())
}

#[allow(dead_code)]
fn page_selu(x: Tensor) -> Result<()> {
    ops::selu(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_hardswish(x: Tensor) -> Result<()> {
    ops::hardswish(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_hardsigmoid(x: Tensor) -> Result<()> {
    ops::hardsigmoid(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_hardtanh(x: Tensor) -> Result<()> {
    ops::hardtanh(&x, -1, 1)?;
    Ok(())
}

#[allow(dead_code)]
fn page_softplus(x: Tensor) -> Result<()> {
    ops::softplus(&x, 1, 20)?;
    Ok(())
}

#[allow(dead_code)]
fn page_mish(x: Tensor) -> Result<()> {
    ops::mish(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_logical_not(x: Tensor) -> Result<()> {
    ops::logical_not(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_bitwise_not(x: Tensor) -> Result<()> {
    ops::bitwise_not(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_isnan(x: Tensor) -> Result<()> {
    ops::isnan(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_isinf(x: Tensor) -> Result<()> {
    ops::isinf(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_isfinite(x: Tensor) -> Result<()> {
    ops::isfinite(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_nan_to_num(x: Tensor) -> Result<()> {
    ops::nan_to_num(&x, 0, f64::MAX, f64::MIN)?;
    Ok(())
}

#[allow(dead_code)]
fn page_clamp(x: Tensor) -> Result<()> {
    ops::clamp(&x, f64::NEG_INFINITY, f64::INFINITY)?;
    Ok(())
}

#[allow(dead_code)]
fn page_add(a: Tensor, b: Tensor) -> Result<()> {
    ops::add(&a, &b)?;
    kernels::add(1).run(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_sub(a: Tensor, b: Tensor) -> Result<()> {
    ops::sub(&a, &b)?;
    kernels::sub(1).run(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_mul(a: Tensor, b: Tensor) -> Result<()> {
    ops::mul(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_div(a: Tensor, b: Tensor) -> Result<()> {
    ops::div(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_div_trunc(a: Tensor, b: Tensor) -> Result<()> {
    ops::div_trunc(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_floor_divide(a: Tensor, b: Tensor) -> Result<()> {
    ops::floor_divide(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_remainder(a: Tensor, b: Tensor) -> Result<()> {
    ops::remainder(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_pow(a: Tensor, b: Tensor) -> Result<()> {
    ops::pow(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_maximum(a: Tensor, b: Tensor) -> Result<()> {
    ops::maximum(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_minimum(a: Tensor, b: Tensor) -> Result<()> {
    ops::minimum(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_bitwise_and(a: Tensor, b: Tensor) -> Result<()> {
    ops::bitwise_and(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_bitwise_or(a: Tensor, b: Tensor) -> Result<()> {
    ops::bitwise_or(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_bitwise_xor(a: Tensor, b: Tensor) -> Result<()> {
    ops::bitwise_xor(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_prelu(x: Tensor, weight: Tensor) -> Result<()> {
    ops::prelu(&x, &weight)?;
    Ok(())
}

#[allow(dead_code)]
fn page_eq(a: Tensor, b: Tensor) -> Result<()> {
    ops::eq(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_ne(a: Tensor, b: Tensor) -> Result<()> {
    ops::ne(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_gt(a: Tensor, b: Tensor) -> Result<()> {
    ops::gt(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_lt(a: Tensor, b: Tensor) -> Result<()> {
    ops::lt(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_ge(a: Tensor, b: Tensor) -> Result<()> {
    ops::ge(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_le(a: Tensor, b: Tensor) -> Result<()> {
    ops::le(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_logical_and(a: Tensor, b: Tensor) -> Result<()> {
    ops::logical_and(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_logical_or(a: Tensor, b: Tensor) -> Result<()> {
    ops::logical_or(&a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_silu_and_mul(x: Tensor) -> Result<()> {
    ops::silu_and_mul(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_gelu_and_mul(x: Tensor) -> Result<()> {
    ops::gelu_and_mul(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_gelu_tanh_and_mul(x: Tensor) -> Result<()> {
    ops::gelu_tanh_and_mul(&x)?;
    Ok(())
}

#[allow(dead_code)]
fn page_where(condition: Tensor, a: Tensor, b: Tensor) -> Result<()> {
    ops::where_cond(&condition, &a, &b)?;
    Ok(())
}

#[allow(dead_code)]
fn page_lerp(a: Tensor, b: Tensor, weight: Tensor) -> Result<()> {
    ops::lerp(&a, &b, &weight)?;
    Ok(())
}

#[allow(dead_code)]
fn page_clamp_tensor(x: Tensor, min: Tensor, max: Tensor) -> Result<()> {
    ops::clamp_tensor(&x, &min, &max)?;
    Ok(())
}
