//! Activations with a weight for each channel.

pointwise_macros::table! { channel_family Channel;
    /// `x > 0 ? x : weight x` (He et al. 2015); one weight for all, or one for each of dimension 1 of x.
    prelu: Prelu (x, weight: Real) -> T, [floats], Exact => if x > T::ZERO { x } else { weight * x };
}
