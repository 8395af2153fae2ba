//! The family's kernel entries: the op tables x element types x strategies, and nothing else.
//!
//! Each table is behind a feature of its name, so that the builder can compile the tables side by side.
#![no_std]

pointwise_device::kernel_crate!();

#[cfg(feature = "unary")]
mod unary {
    use pointwise_device::family::unary::*;

    pointwise_device::unary_family!(pointwise_device::export);
}

#[cfg(feature = "powers")]
mod powers {
    use pointwise_device::family::powers::*;

    pointwise_device::powers_family!(pointwise_device::export);
}

#[cfg(feature = "random")]
mod random {
    use pointwise_device::family::random::*;

    pointwise_device::random_family!(pointwise_device::export);
}

#[cfg(feature = "generator")]
mod generator {
    use pointwise_device::family::generator::*;

    pointwise_device::generator_family!(pointwise_device::export);
}

#[cfg(feature = "rope")]
mod rope {
    pointwise_device::export!(Rope;);
}

#[cfg(feature = "convert")]
mod convert {
    pointwise_device::export!(Conversions;);
}

#[cfg(feature = "lookup")]
mod lookup {
    pointwise_device::export!(Lookup;);
}

#[cfg(feature = "binary")]
mod binary {
    use pointwise_device::family::binary::*;

    pointwise_device::binary_family!(pointwise_device::export);
}

#[cfg(feature = "comparison")]
mod comparison {
    use pointwise_device::family::comparison::*;

    pointwise_device::comparison_family!(pointwise_device::export);
}

#[cfg(feature = "bitwise")]
mod bitwise {
    use pointwise_device::family::bitwise::*;

    pointwise_device::bitwise_family!(pointwise_device::export);
}

#[cfg(feature = "channel")]
mod channel {
    use pointwise_device::family::channel::*;

    pointwise_device::channel_family!(pointwise_device::export);
}

#[cfg(feature = "gated")]
mod gated {
    use pointwise_device::family::gated::*;

    pointwise_device::gated_family!(pointwise_device::export);
}

#[cfg(feature = "ternary")]
mod ternary {
    use pointwise_device::family::ternary::*;

    pointwise_device::ternary_family!(pointwise_device::export);
}

#[cfg(feature = "select")]
mod select {
    use pointwise_device::family::select::*;

    pointwise_device::select_family!(pointwise_device::export);
}

#[cfg(feature = "backward")]
mod backward {
    use pointwise_device::family::backward::*;

    pointwise_device::backward_family!(pointwise_device::export);
}

#[cfg(feature = "gradients")]
mod gradients {
    use pointwise_device::family::gradients::*;

    pointwise_device::gradients_family!(pointwise_device::export);
}

#[cfg(feature = "select_gradients")]
mod select_gradients {
    use pointwise_device::family::select_gradients::*;

    pointwise_device::select_gradients_family!(pointwise_device::export);
}

#[cfg(feature = "channel_gradients")]
mod channel_gradients {
    use pointwise_device::family::channel_gradients::*;

    pointwise_device::channel_gradients_family!(pointwise_device::export);
}

#[cfg(feature = "gated_gradients")]
mod gated_gradients {
    use pointwise_device::family::gated_gradients::*;

    pointwise_device::gated_gradients_family!(pointwise_device::export);
}
