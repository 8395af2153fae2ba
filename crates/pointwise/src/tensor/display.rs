//! Tensors as text, laid out as PyTorch prints them.

use std::fmt;

use pointwise_core::DType;

use super::{Tensor, TensorView, TensorViewMut};
use crate::Device;
use crate::error::Result;

/// A tensor of more elements shows only its edges.
const MOST_ELEMENTS: usize = 1000;
/// The entries shown at each end of a dimension.
const EDGE: usize = 3;
/// The most characters of a line.
const LINE: usize = 80;
/// Digits after the point, if no precision is given.
const DIGITS: usize = 4;
/// The most digits: with these every f32, and so every element, is exact. Formatting panics from 2^16 - 2 on.
const MOST_DIGITS: usize = 149;
const START: &str = "tensor(";

/// Writes the elements, then type, shape and device. A tensor of more than 1,000 elements shows the first and last
/// three along each dimension, and dots. Floats have four digits after the point, or as many as the precision says
/// (`{:.7}`), but at most 149, which is exact for all. They have an exponent if they span more than three decades, as
/// in PyTorch.
///
/// Reading a GPU's elements waits for the work that writes them. If that fails, the reason is in their place.
///
/// ```
/// use pointwise::{Device, Tensor};
///
/// let x = Tensor::from_slice(&Device::cpu(), &[1.0_f32, -2.5, 0.0, f32::INFINITY], [2, 2])?;
/// let text = "tensor([[ 1.0000, -2.5000],\n        [ 0.0000,     inf]], dtype=f32, shape=[2, 2], device=cpu)";
/// assert_eq!(x.to_string(), text);
/// # Ok::<(), pointwise::Error>(())
/// ```
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

/// Writes the text of [`Tensor`].
impl fmt::Display for TensorViewMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_view().fmt(f)
    }
}

/// Writes the text of [`Tensor`].
impl fmt::Display for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(START)?;
        let shortened = self.numel() > MOST_ELEMENTS;
        match shown(self, shortened) {
            Err(error) => write!(f, "cannot be read: {error}")?,
            Ok(_) if self.numel() == 0 => f.write_str("[]")?,
            Ok(cells) => {
                let texts = texts(&cells, f.precision().unwrap_or(DIGITS).min(MOST_DIGITS));
                let width = texts.iter().map(String::len).max().unwrap_or(0);
                let mut writer = Writer { out: f, cells: texts.iter(), width, shortened };
                writer.dimension(self.shape().dims(), START.len())?;
            }
        }
        write!(f, ", dtype={}, shape={}, device={})", self.dtype(), self.shape(), self.device())
    }
}

/// The value of an element that is shown.
#[derive(Clone, Copy)]
enum Cell {
    Float(f64),
    Whole(i64),
    Bool(bool),
}

/// The number of first and of last entries of a dimension that are shown.
fn ends(size: usize, shortened: bool) -> [usize; 2] {
    if shortened && size > 2 * EDGE { [EDGE, EDGE] } else { [size, 0] }
}

/// The elements that are shown, in row-major order.
fn shown(view: &TensorView<'_>, shortened: bool) -> Result<Vec<Cell>> {
    if !shortened {
        return read(view);
    }
    let mut cells = Vec::new();
    edges(view, &mut cells)?;
    Ok(cells)
}

/// Reads the elements at the edges of every dimension.
fn edges(view: &TensorView<'_>, cells: &mut Vec<Cell>) -> Result<()> {
    let Some(&size) = view.shape().dims().first() else {
        cells.extend(read(view)?);
        return Ok(());
    };
    let [first, last] = ends(size, true);
    if view.shape().rank() == 1 {
        cells.extend(read(&view.narrow(0, 0, first)?)?);
        cells.extend(read(&view.narrow(0, size - last, last)?)?);
        return Ok(());
    }
    (0..first).chain(size - last..size).try_for_each(|i| edges(&view.select(0, i)?, cells))
}

fn read(view: &TensorView<'_>) -> Result<Vec<Cell>> {
    // f32 holds all floats, i64 all integers. They are converted here: a GPU may lack the kernel.
    let host = Tensor::from_bytes(&Device::cpu(), view.dtype(), &view.to_bytes()?, *view.shape())?;
    match view.dtype() {
        DType::Bool => Ok(host.to_vec()?.into_iter().map(Cell::Bool).collect()),
        dtype if dtype.is_float() => {
            let floats = host.to_dtype(DType::F32)?.to_vec::<f32>()?;
            Ok(floats.into_iter().map(|x| Cell::Float(x.into())).collect())
        }
        _ => Ok(host.to_dtype(DType::I64)?.to_vec()?.into_iter().map(Cell::Whole).collect()),
    }
}

/// Returns the elements' texts, floats all in one form.
fn texts(cells: &[Cell], digits: usize) -> Vec<String> {
    let magnitudes = || {
        let floats = cells.iter().filter_map(|cell| if let Cell::Float(x) = cell { Some(x.abs()) } else { None });
        floats.filter(|x| x.is_finite() && *x != 0.0)
    };
    let (least, most) = (magnitudes().fold(f64::INFINITY, f64::min), magnitudes().fold(0.0, f64::max));
    let are_whole = magnitudes().all(|x| x.fract() == 0.0);
    // PyTorch's rule.
    let by_exponent = most > 1e3 * least || most > 1e8 || (least < 1e-4 && !are_whole);
    let text = |cell: &Cell| match *cell {
        Cell::Whole(x) => x.to_string(),
        Cell::Bool(x) => x.to_string(),
        Cell::Float(x) if x.is_nan() => "nan".to_owned(),
        Cell::Float(x) if x.is_infinite() => x.to_string(),
        Cell::Float(x) if by_exponent => format!("{x:.digits$e}"),
        Cell::Float(x) if are_whole => format!("{x:.0}."),
        Cell::Float(x) => format!("{x:.digits$}"),
    };
    cells.iter().map(text).collect()
}

/// Writes brackets around the elements' texts.
struct Writer<'w, 'f, 't> {
    out: &'w mut fmt::Formatter<'f>,
    cells: std::slice::Iter<'t, String>,
    width: usize,
    shortened: bool,
}

impl Writer<'_, '_, '_> {
    /// Writes the elements of the dimensions `dims`, `indent` characters into the line.
    fn dimension(&mut self, dims: &[usize], indent: usize) -> fmt::Result {
        let Some((&size, inner)) = dims.split_first() else { return self.cell() };
        let [first, last] = ends(size, self.shortened);
        let in_a_line = if inner.is_empty() { (LINE.saturating_sub(indent) / (self.width + 2)).max(1) } else { 1 };
        // PyTorch's rule: one more empty line for each dimension that follows.
        let lines = "\n".repeat(inner.len().max(1));
        self.out.write_str("[")?;
        for k in 0..first + last {
            if k > 0 {
                self.out.write_str(",")?;
                self.apart(k % in_a_line == 0, &lines, indent)?;
            }
            if k == first {
                self.out.write_str("...,")?;
                self.apart(!inner.is_empty(), &lines, indent)?;
            }
            self.dimension(inner, indent + 1)?;
        }
        self.out.write_str("]")
    }

    /// Writes a space, or line breaks.
    fn apart(&mut self, own: bool, lines: &str, indent: usize) -> fmt::Result {
        if own { write!(self.out, "{lines}{:1$}", "", indent + 1) } else { self.out.write_str(" ") }
    }

    fn cell(&mut self) -> fmt::Result {
        // There is a text for each.
        self.cells.next().map_or(Ok(()), |text| write!(self.out, "{text:>0$}", self.width))
    }
}
