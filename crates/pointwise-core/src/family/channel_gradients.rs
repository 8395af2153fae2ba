//! The gradients of [`super::channel`], as those of [`super::gradients`]: that of the weight has the shape of x, and is
//! summed over all dimensions but the channel's by the caller.

pointwise_macros::table! { channel_gradients_family ChannelGradients;
    /// `x > 0 ? grad : weight grad` and `x > 0 ? 0 : x grad`.
    // By hand: kernels for f32 would have a branch a lane.
    prelu_backward: PreluBackward (grad, x, weight: Real) -> (grad_x, grad_weight), [f32 f16 bf16], Exact => {
        if x > T::ZERO { [grad, T::ZERO] } else { [weight * grad, x * grad] }
    };
}
