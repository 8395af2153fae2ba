//! Activations of one half of the last dimension times the other: `(.., 2N) -> (.., N)`, the gate first.

pointwise_macros::table! { gated_family Gated;
    /// `silu(gate) * value`: SwiGLU (Shazeer 2020).
    silu_and_mul: SiluAndMul (gate, value: Real) -> T, [floats], Ulp(4.0) => gate.silu() * value;
    /// `gelu(gate) * value`, by the error function: GEGLU (Shazeer 2020).
    gelu_and_mul: GeluAndMul (gate, value: Real) -> T, [floats], Ulp(4.0) => gate.gelu() * value;
    /// `gelu(gate, approximate='tanh') * value`.
    gelu_tanh_and_mul: GeluTanhAndMul (gate, value: Real) -> T, [floats], Ulp(4.0) => gate.gelu_tanh() * value;
}
