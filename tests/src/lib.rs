//! What the tests share: inputs, and the comparison of results with the oracle.

pub mod accuracy;
pub mod cases;
pub mod convert;
pub mod copies;
pub mod golden;
pub mod gradients;
pub mod inputs;
pub mod judge;
pub mod layouts;
pub mod lookup;
pub mod map;
pub mod matrix;
pub mod numbers;
pub mod order;
pub mod params;
pub mod planted;
pub mod promote;
pub mod temporaries;
pub mod two;

/// The ops of one operand, and what runs beneath `pow` with a number.
pub fn unary() -> impl Iterator<Item = &'static pointwise::UnaryDef> {
    pointwise::UNARY.iter().chain(pointwise::POWERS).copied()
}

/// Runs `$body` with `$E` as the Rust type of the element type `$dtype`.
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $E:ident => $body:expr) => {{
        use pointwise_core::element::ty;
        macro_rules! arm {
            ($t:ident) => {{
                type $E = ty::$t;
                $body
            }};
        }
        match $dtype {
            pointwise::DType::F32 => arm!(f32),
            pointwise::DType::F16 => arm!(f16),
            pointwise::DType::BF16 => arm!(bf16),
            pointwise::DType::F8E4M3 => arm!(f8e4m3),
            pointwise::DType::F8E5M2 => arm!(f8e5m2),
            pointwise::DType::I8 => arm!(i8),
            pointwise::DType::I16 => arm!(i16),
            pointwise::DType::I32 => arm!(i32),
            pointwise::DType::I64 => arm!(i64),
            pointwise::DType::U8 => arm!(u8),
            pointwise::DType::Bool => arm!(bool),
        }
    }};
}
