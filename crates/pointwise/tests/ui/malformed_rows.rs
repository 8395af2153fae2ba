//! Rows that the macros refuse in words of their own.

mod results {
    pointwise_core::unary_ops! { result_ops;
        /// `2 x`.
        double: Double (x: Num) -> f32, [f32], Exact => x + x;
    }
}

mod operands {
    pointwise_core::unary_ops! { operand_ops;
        /// `a + b`.
        total: Total (a, b: Num) -> T, [f32], Exact => a + b;
    }
}

mod parameters {
    pointwise_core::unary_ops! { parameter_ops;
        /// A polynomial.
        quartic: Quartic { a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0 } (x: Real) -> T, [f32], Ulp(8.0) =>
            (((a * x + b) * x + c) * x + d) * x + e;
    }
}

fn main() {}
