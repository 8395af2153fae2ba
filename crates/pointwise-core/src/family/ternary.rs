//! Ops of three operands.

pointwise_macros::table! { ternary_family Ternary;
    /// From a to b: `weight < 1/2 ? a + weight (b - a) : b - (b - a) (1 - weight)` by magnitude of the weight, with
    /// fused multiply-adds in f32.
    lerp: Lerp (a, b, weight: Real) -> T, [floats], Exact => {
        let distance = b - a;
        if weight.abs() < T::constant(0.5) {
            weight.mul_add(distance, a)
        } else {
            (-distance).mul_add(T::ONE - weight, b)
        }
    };
    /// `clamp` with a bound for each element: `min(max(x, min), max)`, so `max` where `min > max`; NaN in any gives
    /// NaN.
    clamp_tensor: ClampTensor (x, min, max: Num) -> T, [floats ints], Exact => x.clamp(min, max);
}
