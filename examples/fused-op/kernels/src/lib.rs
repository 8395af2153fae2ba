//! Formulas that would otherwise be several ops. Each table needs a module of its own: here, one for each kind of op.
#![no_std]

pointwise_device::kernel_crate!();

/// Up to three operands and a random word for each element.
pub mod random {
    pointwise_device::random_ops! { random_table;
        /// `residual + dropout(silu(gate) * value, p)`: the end of a transformer block. The error is counted in ULP of
        /// the larger summand.
        silu_dropout_add: SiluDropoutAdd { p = 0.1 } (residual, gate, value, bits: Real) -> T, [f32 f16 bf16], Ulp(4.0) =>
            residual + (gate.silu() * value).dropout(p, bits);
        /// `x` and noise, uniform from `-width / 2` to `width / 2`.
        jitter: Jitter { width = 1.0 } (x, bits: Real) -> T, [f32 bf16 f8e4m3], Ulp(1.0) =>
            (T::uniform(bits) - T::constant(0.5)).mul_add(width, x);
    }
    random_table!(pointwise_device::export_random);
}

/// Three operands.
pub mod ternary {
    pointwise_device::ternary_ops! { ternary_table;
        /// `residual + silu(gate) * value`: the same without dropout, for inference.
        silu_mul_add: SiluMulAdd (residual, gate, value: Real) -> T, [f32 f16 bf16], Ulp(4.0) =>
            gate.silu().mul_add(value, residual);
    }
    ternary_table!(pointwise_device::export_ternary);
}

/// Two operands.
pub mod binary {
    pointwise_device::binary_ops! { binary_table;
        /// `max(a + b, 0)`.
        add_relu: AddRelu (a, b: Num) -> T, [f32 bf16 i32], Ulp(1.0) => (a + b).maximum(T::ZERO);
    }
    binary_table!(pointwise_device::export_binary);
}

/// The two halves of one tensor's last dimension.
pub mod gated {
    pointwise_device::gated_ops! { gated_table;
        /// `max(gate, 0)^2 value` (So et al. 2021, gated).
        squared_relu_and_mul: SquaredReluAndMul (gate, value: Real) -> T, [f32 bf16], Ulp(2.0) =>
            { let r = gate.maximum(T::ZERO); r * r * value };
    }
    gated_table!(pointwise_device::export_binary);
}

/// No operand: tensors made of their indices.
pub mod generator {
    pointwise_device::generator_ops! { generator_table;
        /// 0 where `row - window < column <= row`, else -infinity: the mask of sliding-window attention.
        window_mask: WindowMask { window = 1024.0 } (plane, row, column) [f32 f16 bf16], Exact =>
            if column <= row && ((row - column) as f32) < window { 0.0 } else { f32::NEG_INFINITY };
    }
    generator_table!(pointwise_device::export_generator);
}
