//! Tensors from safetensors files and to them.
//!
//! ```
//! use pointwise::{Device, Tensor, ops};
//! use safetensors::SafeTensors;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let cpu = Device::cpu();
//! # let x = Tensor::from_slice(&cpu, &[-1.0_f32, 0.0, 1.0, 2.0], [2, 2])?;
//! # let bytes = safetensors::serialize([("x", x.to_safetensors()?)], None)?;
//! let file = SafeTensors::deserialize(&bytes)?; // the bytes of a file
//! let x = Tensor::from_safetensors(&Device::best()?, &file.tensor("x")?)?;
//! let y = ops::relu(&x)?;
//! let bytes = safetensors::serialize([("y", y.to_safetensors()?)], None)?; // what a file will have
//! # assert_eq!(SafeTensors::deserialize(&bytes)?.tensor("y")?.shape(), [2, 2]);
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;

use ::safetensors::View;
use ::safetensors::tensor::{Dtype, TensorView as FileView};

use crate::error::{ErrorKind, Result};
use crate::{DType, Device, Tensor};

/// A tensor's elements on the host: what `safetensors::serialize` writes to a file.
#[derive(Clone, Debug)]
pub struct ToFile {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for ToFile {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

impl Tensor {
    /// Copies a file's tensor to a device.
    ///
    /// # Errors
    /// An element type that ops do not take ([`dtype`]); a bool other than 0 and 1; too many dimensions; out of memory.
    pub fn from_safetensors(device: &Device, x: &FileView<'_>) -> Result<Tensor> {
        Tensor::from_bytes(device, dtype(x.dtype())?, x.data(), x.shape())
    }

    /// Copies the elements to the host, for a file. Waits for the work that writes them.
    ///
    /// # Errors
    /// Out of memory; the driver's.
    pub fn to_safetensors(&self) -> Result<ToFile> {
        Ok(ToFile { dtype: to_file(self.dtype()), shape: self.shape().to_vec(), bytes: self.to_bytes()? })
    }
}

/// Returns the element type of a file's.
///
/// # Errors
/// One that ops do not take, such as F64.
pub fn dtype(of_file: Dtype) -> Result<DType> {
    DType::ALL.into_iter().find(|&ours| to_file(ours) == of_file).ok_or_else(|| {
        let known: Vec<String> = DType::ALL.iter().map(|&ours| to_file(ours).to_string()).collect();
        let advice = format!("convert it to one of {}", known.join(", "));
        ErrorKind::Unsupported { what: format!("a tensor of {of_file} elements"), advice }.into()
    })
}

/// Returns the file's name of an element type.
#[must_use]
pub fn to_file(dtype: DType) -> Dtype {
    match dtype {
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F8E4M3 => Dtype::F8_E4M3,
        DType::F8E5M2 => Dtype::F8_E5M2,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
        DType::Bool => Dtype::BOOL,
    }
}
