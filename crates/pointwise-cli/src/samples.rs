//! The samples of the tour: values of each element type, on the device and as bytes.

use pointwise::{DType, Device, Tensor};
use pointwise_core::Element;
use pointwise_testkit::{inputs, judge, with_element};

use crate::error::Result;

/// Values of a type that has too many codes to try them all: a prime, which no vector width divides.
const COUNT: usize = 10_007;
/// Choices of operands that go together, of more than two.
const CHOICES: usize = 20_000;

/// A type's samples, on the device and as bytes.
pub(crate) struct Samples {
    pub(crate) dtype: DType,
    /// For ops of one operand.
    pub(crate) one: Sample,
    /// For ops of two, and three.
    pub(crate) two: Vec<Sample>,
    pub(crate) three: Vec<Sample>,
    /// For gradients of ops of three.
    pub(crate) four: Vec<Sample>,
    /// Conditions for two of `three`.
    pub(crate) conditions: Sample,
    /// `two` as the halves of one tensor's last dimension.
    pub(crate) halves: Tensor,
    /// The second and the third of `three`, likewise.
    pub(crate) gates: Tensor,
}

/// A tensor, on the device and as bytes.
pub(crate) struct Sample {
    pub(crate) tensor: Tensor,
    pub(crate) bytes: Vec<u8>,
}

impl Samples {
    /// Makes the samples of a type on a device.
    ///
    /// # Errors
    /// The errors of the device.
    pub(crate) fn new(device: &Device, dtype: DType) -> Result<Samples> {
        let sample = |dtype: DType, bytes: Vec<u8>| -> Result<Sample> {
            let tensor = Tensor::from_bytes(device, dtype, &bytes, [bytes.len() / dtype.size()])?;
            Ok(Sample { tensor, bytes })
        };
        let tuples = |dtypes: &[DType]| -> Result<Vec<Sample>> {
            inputs::tuples(dtypes, CHOICES, 2).into_iter().map(|bytes| sample(dtype, bytes)).collect()
        };
        let [two, three, four] = [tuples(&[dtype; 2])?, tuples(&[dtype; 3])?, tuples(&[dtype; 4])?];
        let beside = |parts: &[Sample]| -> Result<Tensor> {
            let bytes: Vec<u8> = parts.iter().flat_map(|sample| sample.bytes.iter().copied()).collect();
            Ok(Tensor::from_bytes(device, dtype, &bytes, [1, bytes.len() / dtype.size()])?)
        };
        let (halves, gates) = (beside(&two)?, beside(&three[1..])?);
        // No other sample has this period.
        let conditions = (0..CHOICES).map(|i| u8::from(i % 5 < 2)).collect();
        let conditions = sample(DType::Bool, conditions)?;
        let one = sample(dtype, inputs::codes(dtype, COUNT, 2))?;
        Ok(Samples { dtype, one, two, three, four, conditions, halves, gates })
    }
}

/// Elements as numbers.
pub(crate) fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    with_element!(dtype, E => {
        bytes.chunks_exact(size_of::<E>()).map(|code| judge::from_bytes::<E>(code).to_f64()).collect()
    })
}
