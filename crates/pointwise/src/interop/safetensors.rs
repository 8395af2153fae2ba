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
        Ok(ToFile { dtype: to_file(self.dtype())?, shape: self.shape().to_vec(), bytes: self.to_bytes()? })
    }
}

/// Returns the element type of a file's.
///
/// # Errors
/// A type that ops do not take, such as F64.
pub fn dtype(of_file: Dtype) -> Result<DType> {
    let name = of_file.to_string();
    DType::ALL.into_iter().find(|dtype| dtype.safetensors_name() == name).ok_or_else(|| {
        let known = DType::ALL.map(DType::safetensors_name).join(", ");
        let (what, advice) = (format!("a tensor of {name} elements"), format!("convert it to one of {known}"));
        ErrorKind::Unsupported { what, advice }.into()
    })
}

/// Returns the file's element type for one of ours, by [`DType::safetensors_name`].
///
/// # Errors
/// The crate `safetensors` has no type of this name.
pub fn to_file(dtype: DType) -> Result<Dtype> {
    serde_json::from_value(dtype.safetensors_name().into()).map_err(|_| {
        let advice = "convert the tensor first".to_owned();
        ErrorKind::Unsupported { what: format!("a tensor of {dtype} elements in a file"), advice }.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_goes_to_a_file_and_back() {
        for ours in DType::ALL {
            assert_eq!(dtype(to_file(ours).unwrap()).unwrap(), ours);
        }
    }
}
