//! Any chain of view transformations against a model that knows no strides: the elements, index by index.

use pointwise::{
    Device, Tensor, TensorView, kernels,
    tensor::{Overlap, overlap},
};
use proptest::prelude::*;

/// A tensor as a list of elements in row-major order.
#[derive(Clone, Debug)]
struct Model {
    dims: Vec<usize>,
    data: Vec<i32>,
}

impl Model {
    fn get(&self, index: &[usize]) -> i32 {
        let at = self.dims.iter().zip(index).fold(0, |at, (&dim, &i)| at * dim + i);
        self.data[at]
    }

    /// A model of shape `dims` whose element at an index is this one's at `source(index)`.
    fn map(&self, dims: Vec<usize>, source: impl Fn(&[usize]) -> Vec<usize>) -> Model {
        let count: usize = dims.iter().product();
        let data = (0..count).map(|number| {
            let mut rest = number;
            let mut index = vec![0; dims.len()];
            for (i, &dim) in index.iter_mut().zip(&dims).rev() {
                (*i, rest) = (rest % dim, rest / dim);
            }
            self.get(&source(&index))
        });
        Model { data: data.collect(), dims }
    }
}

/// One transformation; the numbers are brought into range where it is applied.
#[derive(Clone, Debug)]
enum Change {
    Narrow(usize, usize, usize),
    Step(usize, usize),
    Select(usize, usize),
    Permute(usize, usize),
    Expand(usize, bool),
    Unsqueeze(usize),
    Squeeze(usize),
    Flatten,
}

fn change() -> impl Strategy<Value = Change> {
    let n = || 0..1000_usize;
    prop_oneof![
        3 => (n(), n(), n()).prop_map(|(dim, start, len)| Change::Narrow(dim, start, len)),
        3 => (n(), 1..6_usize).prop_map(|(dim, step)| Change::Step(dim, step)),
        1 => (n(), n()).prop_map(|(dim, index)| Change::Select(dim, index)),
        3 => (n(), n()).prop_map(|(a, b)| Change::Permute(a, b)),
        2 => (0..4_usize, any::<bool>()).prop_map(|(times, front)| Change::Expand(times, front)),
        1 => n().prop_map(Change::Unsqueeze),
        1 => n().prop_map(Change::Squeeze),
        1 => Just(Change::Flatten),
    ]
}

/// The view and its model after `change`; as they were where it does not apply.
fn apply<'a>(view: TensorView<'a>, model: Model, change: &Change) -> (TensorView<'a>, Model) {
    let rank = model.dims.len();
    let mut dims = model.dims.clone();
    match *change {
        Change::Narrow(dim, start, len) if rank > 0 => {
            let dim = dim % rank;
            let start = start % (dims[dim] + 1);
            let len = len % (dims[dim] - start + 1);
            dims[dim] = len;
            let new = model.map(dims, |index| {
                let mut index = index.to_vec();
                index[dim] += start;
                index
            });
            (view.narrow(dim, start, len).unwrap(), new)
        }
        Change::Step(dim, step) if rank > 0 => {
            let dim = dim % rank;
            dims[dim] = (0..dims[dim]).step_by(step).count();
            let new = model.map(dims, |index| {
                let mut index = index.to_vec();
                index[dim] *= step;
                index
            });
            (view.step(dim, step).unwrap(), new)
        }
        Change::Select(dim, index) if rank > 0 && dims[dim % rank] > 0 => {
            let dim = dim % rank;
            let at = index % dims[dim];
            dims.remove(dim);
            let new = model.map(dims, |index| {
                let mut index = index.to_vec();
                index.insert(dim, at);
                index
            });
            (view.select(dim, at).unwrap(), new)
        }
        Change::Permute(a, b) if rank > 0 => {
            let mut order: Vec<usize> = (0..rank).collect();
            order.rotate_left(a % rank);
            order.swap(0, b % rank);
            let dims = order.iter().map(|&d| model.dims[d]).collect();
            let new = model.map(dims, |index| {
                let mut source = vec![0; rank];
                for (&d, &i) in order.iter().zip(index) {
                    source[d] = i;
                }
                source
            });
            (view.permute(&order).unwrap(), new)
        }
        Change::Expand(times, front) if rank < 6 && model.data.len() < 2000 => {
            for dim in dims.iter_mut().filter(|dim| **dim == 1) {
                *dim = times;
            }
            if front {
                dims.insert(0, 2);
            }
            let expanded = view.expand(&dims).unwrap();
            let new = model.map(dims, |index| {
                let index = &index[usize::from(front)..];
                index.iter().zip(&model.dims).map(|(&i, &dim)| if dim == 1 { 0 } else { i }).collect()
            });
            (expanded, new)
        }
        Change::Unsqueeze(dim) if rank < 6 => {
            let dim = dim % (rank + 1);
            dims.insert(dim, 1);
            (view.unsqueeze(dim).unwrap(), Model { dims, ..model })
        }
        Change::Squeeze(dim) if rank > 0 && dims[dim % rank] == 1 => {
            dims.remove(dim % rank);
            (view.squeeze(dim % rank).unwrap(), Model { dims, ..model })
        }
        Change::Flatten if view.is_contiguous() => {
            let dims = vec![model.data.len()];
            (view.reshape(&dims).unwrap(), Model { dims, ..model })
        }
        _ => (view, model),
    }
}

fn chain<'a>(tensor: &'a Tensor, start: &Model, changes: &[Change]) -> (TensorView<'a>, Model) {
    changes.iter().fold((tensor.view(), start.clone()), |(view, model), change| apply(view, model, change))
}

/// One long dimension of 0 to 70 and up to three short ones, in any order.
fn shape() -> impl Strategy<Value = Vec<usize>> {
    (prop::collection::vec(0..=5_usize, 0..=3), 0..=70_usize, 0..4_usize).prop_map(|(mut dims, long, at)| {
        dims.insert(at % (dims.len() + 1), long);
        dims
    })
}

fn start(dims: &[usize]) -> (Tensor, Model) {
    let data: Vec<i32> = (0..).take(dims.iter().product()).collect();
    let tensor = Tensor::from_slice(&Device::cpu(), &data, dims).unwrap();
    (tensor, Model { dims: dims.to_vec(), data })
}

fn distinct(data: &[i32]) -> bool {
    let mut sorted = data.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn chains_of_views_agree_with_the_model(dims in shape(), changes in prop::collection::vec(change(), 0..8)) {
        let (tensor, model) = start(&dims);
        let (view, model) = chain(&tensor, &model, &changes);
        prop_assert_eq!(view.shape().dims(), &model.dims[..]);
        prop_assert_eq!(&view.to_vec::<i32>().unwrap(), &model.data);
        prop_assert_eq!(&view.to_tensor().unwrap().to_vec::<i32>().unwrap(), &model.data);
        // Exact for views made from a contiguous tensor.
        prop_assert_eq!(view.layout().may_repeat(), !distinct(&model.data));
        let in_order = model.data.windows(2).all(|pair| pair[1] == pair[0] + 1);
        prop_assert_eq!(view.is_contiguous(), in_order);
        if let (Some(low), Some(high)) = (model.data.iter().min(), model.data.iter().max()) {
            let base = tensor.as_ptr().addr();
            prop_assert_eq!(view.span(), (base + 4 * *low as usize, base + 4 * (*high as usize + 1)));
            prop_assert_eq!(view.address(), base + 4 * model.data[0] as usize);
        } else {
            let (first, last) = view.span();
            prop_assert_eq!(first, last);
        }
    }

    #[test]
    fn overlap_is_told(
        dims in shape(),
        a in prop::collection::vec(change(), 0..4),
        b in prop::collection::vec(change(), 0..4),
    ) {
        let (tensor, model) = start(&dims);
        let (view_a, a) = chain(&tensor, &model, &a);
        let (view_b, b) = chain(&tensor, &model, &b);
        let told = overlap(&view_a, &view_b);
        prop_assert_eq!(told, overlap(&view_b, &view_a));
        let shared = a.data.iter().any(|element| b.data.contains(element));
        let same = a.dims == b.dims && a.data == b.data;
        match told {
            Overlap::None => prop_assert!(!shared),
            Overlap::Exact => prop_assert!(same && !a.data.is_empty()),
            Overlap::Partial => prop_assert!(!same),
        }
    }
}

/// Nobody counts the launches one by one.
#[test]
fn a_call_on_a_view_of_2_to_62_elements_is_planned() {
    let [x, y] = [1, 2].map(|value: i8| Tensor::full(&Device::cpu(), value, [1]).unwrap());
    let [x, y] = [&x, &y].map(|tensor| tensor.view().expand([1 << 62]).unwrap());
    let plan = kernels::neg().plan(x, y).unwrap();
    assert_eq!((plan.n, plan.launches), (1 << 62, (1_usize << 62).div_ceil((1 << 31) - 1)));
    let plan = kernels::add(1).plan(x, x, y).unwrap();
    assert_eq!((plan.n, plan.launches), (1 << 62, (1_usize << 62).div_ceil((1 << 31) - 1)));
}
