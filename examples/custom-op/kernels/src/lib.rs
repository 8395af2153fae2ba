//! Ops that pointwise does not have.
#![no_std]

pointwise_device::kernel_crate!();

pointwise_device::unary_ops! { my_ops;
    /// `max(x, 0)^2` (So et al. 2021).
    squared_relu: SquaredRelu (x: Num) -> T, [floats ints], Ulp(1.0) => { let r = x.maximum(T::ZERO); r * r };
    /// `x + sin^2(a x) / a` (Ziyin et al. 2020).
    snake: Snake { a = 1.0 } (x: Real) -> T, [f32 f16 bf16], Ulp(8.0) => { let s = (a * x).sin(); x + s * s / a };
    /// Whether `x` lies outside of `[-limit, limit]`.
    is_outlier: IsOutlier { limit = 6.0 } (x: Real) -> bool, [floats], Exact => x.abs() > limit;
}

my_ops!(pointwise_device::export_unary);
