//! Shapes and strides of results, as torch has them, and calls of more dimensions than pointwise takes.

use crate::abi::Element;

/// A tensor with the dimensions of the call.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The first element.
    pub(crate) data: *mut u8,
    /// Its element type.
    pub(crate) element: Element,
    /// Steps in elements, one for each dimension of the call; 0 where it is broadcast.
    pub(crate) strides: Vec<i64>,
}

/// Returns the shape that shapes broadcast to.
///
/// # Errors
/// Shapes that cannot be broadcast together.
pub(crate) fn broadcast<'a>(shapes: impl IntoIterator<Item = &'a [i64]>) -> Result<Vec<i64>, String> {
    let mut all: Vec<i64> = Vec::new();
    for shape in shapes {
        if all.len() < shape.len() {
            all.splice(0..0, std::iter::repeat_n(1, shape.len() - all.len()));
        }
        let start = all.len() - shape.len();
        for (dim, (known, size)) in all[start..].iter_mut().zip(shape).enumerate() {
            match (*known, *size) {
                (known, size) if known == size || size == 1 => {}
                (1, size) => *known = size,
                (a, b) => {
                    let dim = start + dim;
                    return Err(format!(
                        "The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
                    ));
                }
            }
        }
    }
    Ok(all)
}

/// Strides in a call of dimensions `sizes` of a tensor of other dimensions, which broadcast to them.
///
/// # Errors
/// Dimensions that do not.
pub(crate) fn expand(sizes: &[i64], own: &[i64], strides: &[i64]) -> Result<Vec<i64>, String> {
    let wrong = || format!("sizes {own:?} do not broadcast to {sizes:?}");
    let start = sizes.len().checked_sub(own.len()).ok_or_else(wrong)?;
    let mut all = vec![0; sizes.len()];
    for (((to, size), own), stride) in all[start..].iter_mut().zip(&sizes[start..]).zip(own).zip(strides) {
        match (own, size) {
            (own, size) if own == size => *to = *stride,
            (1, _) => {}
            _ => return Err(wrong()),
        }
    }
    Ok(all)
}

/// Sizes and strides of what has one element for each row of tensors of dimensions `sizes`.
pub(crate) fn once_a_row(sizes: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let outer = &sizes[..sizes.len().saturating_sub(1)];
    (outer.to_vec(), contiguous(outer))
}

/// Strides of elements one after another.
pub(crate) fn contiguous(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = strides[dim] * sizes[dim].max(1);
    }
    strides
}

/// True if strides equal those of [`contiguous`].
pub(crate) fn is_contiguous(sizes: &[i64], strides: &[i64]) -> bool {
    let mut next = 1;
    sizes.iter().zip(strides).skip(1).rev().all(|(size, stride)| {
        let is_next = *stride == next;
        next *= size.max(&1);
        is_next
    }) && strides.first().is_none_or(|stride| *stride == next)
}

/// Elements from the first to behind the last; 0 if there is none.
pub(crate) fn extent(sizes: &[i64], strides: &[i64]) -> i64 {
    if sizes.contains(&0) {
        return 0;
    }
    sizes.iter().zip(strides).map(|(size, stride)| (size - 1) * stride).sum::<i64>() + 1
}

/// True if two indices may name the same element. Also true for some layouts without such indices.
pub(crate) fn may_repeat(sizes: &[i64], strides: &[i64]) -> bool {
    if sizes.contains(&0) {
        return false;
    }
    let mut dims: Vec<(i64, i64)> =
        sizes.iter().zip(strides).filter(|(size, _)| **size > 1).map(|(size, stride)| (*stride, *size)).collect();
    dims.sort_unstable();
    let mut reach = 0;
    dims.iter().any(|(stride, size)| {
        let repeats = *stride <= reach;
        reach += (size - 1) * stride;
        repeats
    })
}

/// Strides of the result of an elementwise op, which has the order of dimensions of its operands: the rule of torch's
/// TensorIterator. `operands` are dimensions and strides.
///
/// # Errors
/// Operands that do not broadcast to the dimensions.
pub(crate) fn of_result(sizes: &[i64], operands: &[(&[i64], &[i64])]) -> Result<Vec<i64>, String> {
    let plain = contiguous(sizes);
    if sizes.len() < 2 || operands.iter().all(|(own, strides)| *own == sizes && *strides == plain) {
        return Ok(plain);
    }
    let expanded: Vec<Vec<i64>> =
        operands.iter().map(|(own, strides)| expand(sizes, own, strides)).collect::<Result<_, _>>()?;
    let mut order: Vec<usize> = (0..sizes.len()).rev().collect();
    for i in 1..order.len() {
        let mut at = i;
        for below in (0..i).rev() {
            match compare(sizes, &expanded, order[below], order[at]) {
                std::cmp::Ordering::Greater => {
                    order.swap(below, at);
                    at = below;
                }
                std::cmp::Ordering::Less => break,
                std::cmp::Ordering::Equal => {}
            }
        }
    }
    let mut strides = vec![1; sizes.len()];
    let mut next = 1;
    for dim in order {
        strides[dim] = next;
        next *= sizes[dim].max(1);
    }
    Ok(strides)
}

/// Compares two dimensions: the outer one is greater, by the first operand whose strides differ.
fn compare(sizes: &[i64], operands: &[Vec<i64>], a: usize, b: usize) -> std::cmp::Ordering {
    use std::cmp::Ordering::{Equal, Greater};
    for strides in operands {
        let (of_a, of_b) = (strides[a], strides[b]);
        if of_a == 0 || of_b == 0 {
            continue;
        }
        match of_a.cmp(&of_b) {
            Equal if sizes[a] > sizes[b] => return Greater,
            Equal => {}
            other => return other,
        }
    }
    Equal
}

/// [`merge`] of all dimensions but the last, which is a row.
pub(crate) fn merge_rows(sizes: &mut Vec<i64>, items: &mut [Item]) {
    let Some(row) = sizes.pop() else { return };
    let steps: Vec<i64> = items.iter_mut().map(|item| item.strides.pop().unwrap_or(0)).collect();
    merge(sizes, items);
    sizes.push(row);
    items.iter_mut().zip(steps).for_each(|(item, step)| item.strides.push(step));
}

/// Merges dimensions that all tensors step through as one. The order of elements stays.
pub(crate) fn merge(sizes: &mut Vec<i64>, items: &mut [Item]) {
    let mut dim = 0;
    while dim < sizes.len() {
        let is_single = sizes[dim] == 1;
        let joins = dim + 1 < sizes.len()
            && items.iter().all(|item| item.strides[dim] == item.strides[dim + 1] * sizes[dim + 1]);
        if is_single || joins {
            if joins && !is_single {
                sizes[dim + 1] *= sizes[dim];
            }
            sizes.remove(dim);
            items.iter_mut().for_each(|item| {
                item.strides.remove(dim);
            });
        } else {
            dim += 1;
        }
    }
}

/// Calls `work` for each entry of the outer dimensions, with what is left of the call: at most `rank` dimensions.
///
/// # Errors
/// The first of `work`.
pub(crate) fn each<E>(
    rank: usize,
    sizes: &[i64],
    items: &mut [Item],
    work: &mut impl FnMut(&[i64], &[Item]) -> Result<(), E>,
) -> Result<(), E> {
    if sizes.len() <= rank {
        return work(sizes, items);
    }
    let mut rest: Vec<Item> =
        items.iter().map(|item| Item { strides: item.strides[1..].to_vec(), ..item.clone() }).collect();
    for _ in 0..sizes[0] {
        each(rank, &sizes[1..], &mut rest, work)?;
        for (rest, item) in rest.iter_mut().zip(&*items) {
            rest.data = rest.data.wrapping_offset(item.strides[0] as isize * item.element.size() as isize);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pointwise::DType;

    use super::*;

    #[test]
    fn shapes_broadcast() {
        assert_eq!(broadcast([&[2, 1, 3][..], &[4, 1], &[]]), Ok(vec![2, 4, 3]));
        assert!(broadcast([&[2, 3][..], &[2, 4]]).is_err());
        assert_eq!(expand(&[2, 4, 3], &[4, 1], &[1, 1]), Ok(vec![0, 1, 0]));
        assert!(expand(&[2], &[0], &[1]).is_err() && expand(&[2], &[1, 2], &[2, 1]).is_err());
    }

    #[test]
    fn layouts_are_judged() {
        let is = |sizes: &[i64], strides: &[i64]| is_contiguous(sizes, strides);
        assert!(is(&[], &[]) && is(&[3], &[1]) && is(&[2, 3], &[3, 1]) && is(&[2, 0, 3], &contiguous(&[2, 0, 3])));
        assert!(!is(&[3], &[2]) && !is(&[2, 3], &[1, 2]) && !is(&[2, 3], &[0, 1]) && !is(&[2, 3, 4], &[24, 4, 1]));
        assert_eq!([extent(&[], &[]), extent(&[2, 3], &[10, 2]), extent(&[2, 0], &[1, 1])], [1, 15, 0]);
        assert!(may_repeat(&[2, 3], &[0, 1]) && may_repeat(&[4, 2], &[1, 3]));
        assert!(!may_repeat(&[2, 3], &[1, 2]) && !may_repeat(&[2, 1], &[1, 0]) && !may_repeat(&[0, 2], &[0, 0]));
    }

    #[test]
    fn results_keep_the_order_of_dimensions() {
        assert_eq!(of_result(&[2, 3], &[(&[2, 3], &[3, 1])]), Ok(vec![3, 1]));
        assert_eq!(of_result(&[2, 3], &[(&[2, 3], &[1, 2])]), Ok(vec![1, 2]));
        // Channels last; one operand is broadcast and says nothing.
        let last: (&[i64], &[i64]) = (&[2, 3, 4, 5], &[60, 1, 15, 3]);
        assert_eq!(of_result(&[2, 3, 4, 5], &[last, (&[3, 1, 1], &[1, 1, 1])]), Ok(vec![60, 1, 15, 3]));
        // Gaps are closed.
        assert_eq!(of_result(&[4, 3], &[(&[4, 3], &[12, 2])]), Ok(vec![3, 1]));
    }

    #[test]
    fn dimensions_merge_and_are_walked() {
        let mut data = [0_u8; 24];
        let item = |strides: &[i64]| Item {
            data: std::ptr::null_mut(),
            element: Element::Of(DType::U8),
            strides: strides.to_vec(),
        };
        let mut sizes = vec![2, 1, 3, 4];
        let mut items = [item(&[12, 7, 4, 1]), item(&[0, 0, 4, 1])];
        merge(&mut sizes, &mut items);
        assert_eq!((sizes, &items[0].strides[..], &items[1].strides[..]), (vec![2, 12], &[12, 1][..], &[0, 1][..]));

        let (mut sizes, mut items) = (vec![2, 3, 4], [item(&[12, 4, 1]), item(&[3, 1, 0])]);
        merge_rows(&mut sizes, &mut items);
        assert_eq!((sizes, &items[0].strides[..], &items[1].strides[..]), (vec![6, 4], &[4, 1][..], &[1, 0][..]));

        let first = data.as_mut_ptr();
        let mut items = [Item { data: first, element: Element::Of(DType::U8), strides: vec![12, 4, 1] }];
        let mut starts = Vec::new();
        let all = each::<()>(1, &[2, 3, 4], &mut items, &mut |sizes, items| {
            starts.push((sizes.to_vec(), items[0].data.addr() - first.addr()));
            Ok(())
        });
        assert_eq!(all, Ok(()));
        assert_eq!(starts, [0, 4, 8, 12, 16, 20].map(|start| (vec![4], start)));
    }
}
