//! Which kernel serves a walk, what it is told of the tensors, and its launches: what all ops and conversions share.

use std::ffi::c_void;

use pointwise_core::formula::{MAX_INPUTS, MAX_TENSORS, MAX_WORDS};
use pointwise_core::launch::{ACROSS, GROUP, GROUPED_TENSORS, NUMBER, ONCE, PAIRS, PASSING, ROW_SPLITS, SPLITS};
use pointwise_core::{DType, Draw};

use super::walk::{Class, GroupWords, Limit, Places, StepWords, Walk};
use super::{RowClass, Strategy, lookup};
use crate::cuda::{self, Context, Grid, Held};
use crate::error::Result;

/// From this many vectors on threads have two in turn, where they may: the second is on its way while the first is worked
/// on. Of 2^28 elements by a short formula this costs 1 % on an H200, and saves up to 10 % of a long one.
const TURNS_FROM: u64 = 1 << 23;

/// The plan of an op's launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelPlan {
    /// The kernel's class: how operands and result lie.
    pub class: Class,
    /// How the kernel has a row, of an op on rows.
    pub row: Option<RowClass>,
    /// The strategy that will run: never [`Strategy::Auto`].
    pub strategy: Strategy,
    /// Why another strategy than the one asked for; `None` where it is the one asked for, or was left open.
    pub replaced: Option<&'static str>,
    /// Dimensions left after merging; one less is the number of divisions for each thread.
    pub dims: usize,
    /// Threads of a block.
    pub threads: u32,
    /// Elements of a vector; 1 where threads have single elements.
    pub lanes: usize,
    /// Single elements of a thread, where it has no vector: 1 or 4.
    pub group: usize,
    /// Elements before the first aligned vector of a flat call, done one by one.
    pub head: u32,
    /// Launches: one for fewer than 2^31 items.
    pub launches: usize,
    /// Elements of the result.
    pub n: u64,
}

/// The tensors of a call: results, then operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tensors<const N: usize> {
    /// Addresses of their first elements; 0 for those that are not there, and for operands that are numbers.
    pub(super) at: [usize; N],
    /// Their element types.
    pub(super) dtypes: [DType; N],
    /// How many of them are results, or places of results.
    pub(super) results: usize,
    /// How many of them the kernel has: results and operands, numbers among these.
    pub(super) count: usize,
    /// Bit `k`: operand `k` came as a number.
    pub(super) numbers: u32,
    /// Threads of the flat kernel have vectors in turn: see [`pointwise_core::formula::takes_turns`].
    pub(super) in_turns: bool,
    /// Vectors may go across the ends of rows: see [`pointwise_core::formula::goes_across`].
    pub(super) goes_across: bool,
}

/// A walk and the kernel for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice<const N: usize> {
    pub(super) class: Class,
    /// Its items are vectors if the class has them; in [`Class::Flat`] they are elements.
    pub(super) walk: Walk<N>,
    /// Elements of an item.
    pub(super) lanes: usize,
    /// Single elements of a thread, where it has no vector.
    pub(super) group: usize,
    /// How the kernel loads its operands.
    pub(super) marks: LoadModes,
    /// The table that results are looked up in, if any.
    pub(super) looked: Option<TableKind>,
    /// Why another strategy than the one asked for.
    pub(super) replaced: Option<&'static str>,
    pub(super) tensors: Tensors<N>,
}

/// A table of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableKind {
    /// The results of all codes of one operand; each block makes such a table.
    Codes,
    /// The results of all pairs of codes.
    Pairs,
}

/// How a kernel loads its operands: bit `k` is for operand `k`, which has one of these modes at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LoadModes {
    /// It is one element for a whole vector.
    pub(super) once: u32,
    /// It came as a number.
    pub(super) numbers: u32,
    /// It passes through the level-2 cache.
    pub(super) passing: u32,
    /// Vectors go across the ends of rows: [`ACROSS`].
    pub(super) across: bool,
}

impl LoadModes {
    /// The `mode` of a kernel of `count` operands.
    fn mode(self, count: usize) -> u32 {
        let is = |bits: u32, k: usize| bits >> k & 1 == 1;
        let how = |k: usize| match k {
            _ if is(self.numbers, k) => NUMBER,
            _ if is(self.once, k) => ONCE,
            _ if is(self.passing, k) => PASSING,
            _ => 0,
        };
        (0..count).fold(if self.across { ACROSS } else { 0 }, |mode, k| mode | how(k) << (2 * k))
    }
}

/// Bit `k` for each number among operands.
pub(super) fn numbers(given: &[Option<u64>]) -> u32 {
    given.iter().enumerate().fold(0, |bits, (k, given)| bits | u32::from(given.is_some()) << k)
}

impl<const N: usize> Tensors<N> {
    /// The kernel for `walk` by a strategy, vectors having `lanes` elements; `room` is that of [`super::cache_room`].
    pub(super) fn choose(self, walk: &Walk<N>, lanes: usize, strategy: Strategy, room: u64) -> Choice<N> {
        let marks = LoadModes { numbers: self.numbers, ..LoadModes::default() };
        let single = |group, replaced| Choice {
            class: Class::Strided,
            walk: *walk,
            lanes: 1,
            group,
            marks,
            looked: None,
            replaced,
            tensors: self,
        };
        let group = self.group();
        let replaced = match strategy {
            Strategy::Direct => return single(1, None),
            Strategy::ExplicitParallel => {
                let why = "a thread of a kernel of more than four tensors has one element";
                return single(group, (group == 1).then_some(why));
            }
            Strategy::Table => Some("the op has vectors or single elements"),
            _ => None,
        };
        let operands = |of: &dyn Fn(usize) -> bool| {
            (0..N - self.results).fold(0_u32, |bits, k| bits | u32::from(of(self.results + k)) << k)
        };
        let (once, passing) = (walk.once(), self.passing(walk, room));
        let marks = LoadModes {
            once: operands(&|k| once[k]) & !self.numbers,
            passing: operands(&|k| passing[k] && !once[k]),
            ..marks
        };
        let vectors =
            |class, walk| Choice { class, walk, lanes, group: 1, marks, looked: None, replaced, tensors: self };
        // Vectors in turn are all read alike: one value for all goes along rows.
        let fits = !self.in_turns || walk.numel() == 1 || marks.once | marks.numbers == 0;
        if fits && walk.is_flat() && self.head(walk, lanes).is_some() {
            return vectors(Class::Flat, *walk);
        }
        let aligned = |k: usize, step: i64| self.address(k, step).is_multiple_of(lanes * self.dtypes[k].size());
        if let Some(rows) = walk.rows(lanes, aligned) {
            return vectors(Class::Rows, rows);
        }
        if self.goes_across && walk.goes_across(lanes, self.results, |k| aligned(k, 0)) {
            return Choice { marks: LoadModes { across: true, ..marks }, ..vectors(Class::Strided, *walk) };
        }
        match strategy {
            Strategy::Auto => single(group, None),
            _ => single(group, Some("the tensors do not lie in aligned vectors")),
        }
    }

    /// Single elements of a thread that is to have several.
    fn group(&self) -> usize {
        if self.count <= GROUPED_TENSORS { GROUP } else { 1 }
    }

    /// Which operands pass through the level-2 cache: one after another, until the results and the rest have `room`;
    /// none, if the results alone have not. Of those only that are read once and lie in memory of their own.
    fn passing(&self, walk: &Walk<N>, room: u64) -> [bool; N] {
        let mut passing = [false; N];
        // The next call may read what the operand leaves in the cache: warm calls on as much as fits would wait for it.
        if self.is_of_one_size() {
            return passing;
        }
        let bytes = |k: usize| match self.at[k] {
            0 => 0,
            _ => self.dtypes[k].bytes_of(walk.numel() as usize).map_or(u64::MAX, |bytes| bytes as u64),
        };
        let results = (0..self.results).map(bytes).fold(0, u64::saturating_add);
        if results > room {
            return passing;
        }
        let may_pass = |k: &usize| self.at[*k] != 0 && walk.meets_once(*k) && !self.at[..*k].contains(&self.at[*k]);
        let mut staying = (self.results..N).filter(may_pass).map(bytes).fold(results, u64::saturating_add);
        for k in (self.results..N).filter(may_pass) {
            passing[k] = staying > room;
            staying = if passing[k] { staying.saturating_sub(bytes(k)) } else { staying };
        }
        passing
    }

    /// True if there is one operand, and one result of elements of its size.
    fn is_of_one_size(&self) -> bool {
        let mut operands = (self.results..N).filter(|&k| self.at[k] != 0);
        match (self.results, operands.next(), operands.next()) {
            (1, Some(operand), None) => self.dtypes[operand].bits() == self.dtypes[0].bits(),
            _ => false,
        }
    }

    /// The number of elements before one that is aligned for vectors of `lanes` in all tensors that a flat walk steps
    /// along; `None` where there is none.
    pub(super) fn head(&self, walk: &Walk<N>, lanes: usize) -> Option<u32> {
        let (_, steps) = walk.inner();
        let aligned = |head: usize, k: usize| {
            steps[k] == 0 || self.address(k, head as i64).is_multiple_of(lanes * self.dtypes[k].size())
        };
        (0..lanes).find(|&head| (0..N).all(|k| aligned(head, k))).map(|head| head as u32)
    }

    /// The address of the element of tensor `k` that is `place` behind the first.
    fn address(&self, k: usize, place: i64) -> usize {
        self.at[k].wrapping_add_signed(self.dtypes[k].offset(place) as isize)
    }

    /// With the tensors' first elements elsewhere.
    pub(super) fn moved(self, place: Places<N>) -> Tensors<N> {
        Tensors { at: std::array::from_fn(|k| self.address(k, place[k])), ..self }
    }
}

impl<const N: usize> Choice<N> {
    /// Several single elements a thread, whatever the tensors are like.
    pub(super) fn singles(walk: &Walk<N>, tensors: Tensors<N>) -> Choice<N> {
        Choice {
            class: Class::Strided,
            walk: *walk,
            lanes: 1,
            group: tensors.group(),
            marks: LoadModes::default(),
            looked: None,
            replaced: None,
            tensors,
        }
    }

    fn limit(&self) -> Limit {
        Limit::of(self.class, self.lanes)
    }

    /// Returns the plan of launches by blocks of `threads`; `dims` as [`KernelPlan::dims`].
    pub(super) fn plan(&self, dims: usize, threads: u32, n: u64) -> KernelPlan {
        let (mut launches, mut head) = (0, 0);
        if n > 0 {
            launches = self.walk.count_parts(self.limit()) as usize;
            if self.class == Class::Flat {
                head = head_within(self.tensors.head(&self.walk, self.lanes).unwrap_or(0), n);
            }
        }
        KernelPlan {
            class: self.class,
            row: None,
            strategy: match self.class {
                Class::Strided if self.marks.across => Strategy::RegisterCopy,
                Class::Strided if self.group == 1 => Strategy::Direct,
                Class::Strided => Strategy::ExplicitParallel,
                Class::Flat | Class::Rows if self.looked.is_some() => Strategy::Table,
                _ => Strategy::RegisterCopy,
            },
            replaced: self.replaced,
            dims,
            threads,
            lanes: self.lanes,
            group: self.group,
            head,
            launches,
            n,
        }
    }
}

/// A kernel and where it runs.
pub(super) struct Launcher<'a> {
    pub(super) context: &'static Context,
    pub(super) function: cuda::Function,
    pub(super) held: Held<'a>,
    pub(super) threads: u32,
}

/// The arguments of a kernel besides the walk.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    /// How many tensors it has: as many of the walk's first ones.
    pub(super) tensors: usize,
    /// How many of them are operands: of so many its `mode` speaks.
    pub(super) operands: usize,
    /// Operands that came as numbers, zeros for others, then parameters; or the table's address.
    pub(super) words: [&'a [u64]; 2],
    /// The place of the first element, of an op that knows its elements' places; they are those of the first result.
    pub(super) draw: Option<Draw>,
}

impl Launcher<'_> {
    /// Launches the kernel for each part of a walk.
    ///
    /// # Safety
    /// The function is of the choice's class, and takes these arguments; the walk's places are valid in the tensors, of
    /// elements of their sizes, and one that is in a result and an operand has the same place in both; the stream is of
    /// the context.
    pub(super) unsafe fn run<const N: usize>(&self, choice: &Choice<N>, arguments: Arguments<'_>) -> Result<()> {
        let mode = choice.marks.mode(arguments.operands);
        choice.walk.parts(choice.limit(), [0; N], &mut |part, place| {
            let tensors = choice.tensors.moved(place);
            let addresses = tensors.at.map(|address| address as u64);
            let mut params = Params::default();
            addresses[..arguments.tensors].iter().for_each(|address| params.push(address));
            // Pushed values do not move until the launch.
            let (n, head, items): (u64, u32, u32);
            let (steps, groups): (StepWords, GroupWords);
            let mut vectors = 0;
            let work = match choice.class {
                Class::Flat => {
                    n = part.numel();
                    head = head_within(tensors.head(part, choice.lanes).unwrap_or(0), n);
                    params.push(&n);
                    params.push(&head);
                    let body = n - u64::from(head);
                    vectors = body / choice.lanes as u64;
                    vectors + body % choice.lanes as u64 + u64::from(head)
                }
                Class::Strided if choice.marks.across => {
                    groups = part.steps_for_groups(arguments.tensors);
                    (n, items) = (part.numel(), part.numel() as u32);
                    params.push(&items);
                    params.push_last(&groups);
                    n / choice.lanes as u64 + n % choice.lanes as u64
                }
                Class::Strided if arguments.tensors <= GROUPED_TENSORS => {
                    let count;
                    (groups, count) = part.group_words(arguments.tensors, choice.group);
                    items = count as u32;
                    params.push(&items);
                    params.push_last(&groups);
                    count
                }
                class => {
                    let splits = if class == Class::Rows { ROW_SPLITS } else { SPLITS };
                    steps = part.step_words(arguments.tensors, splits);
                    items = part.numel() as u32;
                    params.push(&items);
                    params.push_last(&steps);
                    part.numel()
                }
            };
            params.push(&mode);
            arguments.words.iter().copied().flatten().for_each(|word| params.push(word));
            let draw = arguments.draw.map(|draw| Draw { first: place[0] as u64, ..draw });
            let info = &self.context.info;
            let turns = if choice.tensors.in_turns && vectors >= TURNS_FROM { 2 } else { 1 };
            let (blocks, shared) = match choice.looked {
                Some(TableKind::Pairs) => (lookup::blocks(info.multiprocessors, info.shared_bytes, work), PAIRS as u32),
                Some(TableKind::Codes) => (lookup::code_blocks(vectors), 0),
                None => (work.div_ceil(u64::from(self.threads) * turns) as u32, 0),
            };
            let grid = Grid { blocks: [blocks, 1, 1], threads: [self.threads, 1, 1], shared };
            let params = params.pointers(draw.as_ref());
            // SAFETY: the caller's contract.
            unsafe { cuda::launch_grid(self.function, grid, &self.held, params) }
        })
    }
}

/// The elements before the first aligned vector, of a tensor of `n`: a launch has more elements than a u32 counts.
pub(super) fn head_within(head: u32, n: u64) -> u32 {
    u64::from(head).min(n) as u32
}

/// The most arguments of a launch: tensors, a word for each operand and of the parameters; elements and head or items,
/// mode, steps, draw.
const MOST_ARGUMENTS: usize = MAX_TENSORS + MAX_INPUTS + MAX_WORDS + 5;

/// Pointers to the arguments of a launch, in order, but for the steps, which come behind the rest.
pub(crate) struct Params {
    pointers: [*mut c_void; MOST_ARGUMENTS],
    len: usize,
    last: *mut c_void,
}

impl Default for Params {
    fn default() -> Self {
        Params { pointers: [std::ptr::null_mut(); MOST_ARGUMENTS], len: 0, last: std::ptr::null_mut() }
    }
}

impl Params {
    fn put(&mut self, pointer: *mut c_void) {
        self.pointers[self.len] = pointer;
        self.len += 1;
    }

    /// Puts a value behind the others. It stays where it is until the launch.
    pub(crate) fn push<T>(&mut self, value: &T) {
        self.put(std::ptr::from_ref(value).cast_mut().cast());
    }

    pub(super) fn push_last<T>(&mut self, value: &T) {
        self.last = std::ptr::from_ref(value).cast_mut().cast();
    }

    /// All of them, behind which may stand the place of the first element.
    pub(crate) fn pointers(&mut self, draw: Option<&Draw>) -> &mut [*mut c_void] {
        if !self.last.is_null() {
            self.put(self.last);
        }
        if let Some(draw) = draw {
            self.push(draw);
        }
        &mut self.pointers[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use pointwise_core::launch::how;

    use super::*;
    use crate::Shape;
    use crate::kernel::walk::OperandStrides;

    /// Steps of a tensor of one dimension.
    fn along(step: i64) -> OperandStrides {
        let mut along = OperandStrides::default();
        along[0] = step;
        along
    }

    #[test]
    fn operands_pass_until_the_rest_has_room() {
        // A condition and two operands of 16 bits, one of them broadcast.
        let apart = Tensors {
            at: [64, 128, 192, 256],
            dtypes: [DType::F16, DType::Bool, DType::F16, DType::F16],
            results: 1,
            count: 4,
            numbers: 0,
            in_turns: false,
            goes_across: false,
        };
        let passing_of = |tensors: Tensors<4>, last: i64, room| {
            let shape = Shape::new(&[1000]).unwrap();
            let walk = Walk::new(&shape, &[1, 1, 1, last].map(along));
            tensors.passing(&walk, room)
        };
        let passing = |last, room| passing_of(apart, last, room);
        assert_eq!(passing(1, 7000), [false; 4]);
        assert_eq!(passing(1, 6999), [false, true, false, false]);
        assert_eq!(passing(1, 5999), [false, true, true, false]);
        assert_eq!(passing(1, 2000), [false, true, true, true]);
        assert_eq!(passing(1, 1999), [false; 4]);
        assert_eq!((passing(0, 5000), passing(0, 2000)), ([false; 4], [false, true, true, false]));
        // In place, and an operand that is there twice.
        let in_place = Tensors { at: [64, 128, 64, 256], ..apart };
        assert_eq!(passing_of(in_place, 1, 5000), [false; 4]);
        assert_eq!(passing_of(in_place, 1, 2000), [false, true, false, true]);
        let twice = Tensors { at: [64, 128, 192, 192], ..apart };
        assert_eq!(passing_of(twice, 1, 5000), [false; 4]);
        assert_eq!(passing_of(twice, 1, 4999), [false, true, false, false]);
    }

    /// A bool result of two operands of 16 bits, whose rows of 16 elements lie so many elements apart: its kernel, of
    /// vectors of 8 bytes and of 16.
    fn compared(at: [usize; 3], apart: [i64; 3]) -> Choice<3> {
        let rows = |step| {
            let mut along = OperandStrides::default();
            (along[0], along[1]) = (step, 1);
            along
        };
        let walk = Walk::new(&Shape::new(&[4, 16]).unwrap(), &apart.map(rows));
        let tensors = Tensors {
            at,
            dtypes: [DType::Bool, DType::F16, DType::F16],
            results: 1,
            count: 3,
            numbers: 0,
            in_turns: false,
            goes_across: false,
        };
        tensors.choose(&walk, 8, Strategy::Auto, u64::MAX)
    }

    #[test]
    fn every_row_begins_with_an_aligned_vector_of_each_tensor() {
        assert_eq!(compared([8, 32, 48], [24, 24, 40]).class, Class::Rows);
        for at in [[4, 32, 48], [8, 40, 48], [8, 32, 40]] {
            assert_eq!(compared(at, [24, 24, 40]).class, Class::Strided, "{at:?}");
        }
        for apart in [[20, 24, 40], [24, 20, 40], [24, 24, 20]] {
            assert_eq!(compared([8, 32, 48], apart).class, Class::Strided, "{apart:?}");
        }
        // The second row alone is aligned.
        assert_eq!(compared([4, 32, 48], [20, 24, 40]).class, Class::Strided);
    }

    fn along_two([row, column]: [i64; 2]) -> OperandStrides {
        let mut along = OperandStrides::default();
        (along[0], along[1]) = (row, column);
        along
    }

    /// Rows of 15 elements of 16 bits, and a second operand whose elements lie so far apart.
    fn across(at: [usize; 3], second: [i64; 2]) -> Choice<3> {
        let walk = Walk::new(&Shape::new(&[4, 15]).unwrap(), &[[15, 1], [15, 1], second].map(along_two));
        let tensors = Tensors {
            at,
            dtypes: [DType::F16; 3],
            results: 1,
            count: 3,
            numbers: 0,
            in_turns: false,
            goes_across: true,
        };
        tensors.choose(&walk, 8, Strategy::Auto, u64::MAX)
    }

    #[test]
    fn vectors_go_across_the_ends_of_rows() {
        for second in [[1, 0], [3, 0], [-1, 0]] {
            let choice = across([64, 256, 1026], second);
            assert_eq!((choice.class, choice.lanes), (Class::Strided, 8), "{second:?}");
            assert_eq!(choice.marks.mode(2), ACROSS | ONCE << 2, "{second:?}");
            assert_eq!(choice.plan(2, 128, 60).strategy, Strategy::RegisterCopy);
        }
        // A result or an operand that is not aligned; a row; another stride; an op that must not.
        let is_single = |choice: Choice<3>| !choice.marks.across && choice.lanes == 1;
        assert!(is_single(across([66, 256, 1024], [1, 0])));
        assert!(is_single(across([64, 258, 1024], [1, 0])));
        assert!(is_single(across([64, 256, 1024], [0, 1])));
        assert!(is_single(across([64, 256, 1024], [16, 1])));
        let Choice { mut tensors, walk, .. } = across([64, 256, 1024], [1, 0]);
        tensors.goes_across = false;
        let stays = tensors.choose(&walk, 8, Strategy::RegisterCopy, u64::MAX);
        assert!(is_single(stays) && stays.replaced.is_some());
    }

    /// Whatever the tensors are like.
    #[test]
    fn the_strategy_that_is_asked_for_runs() {
        let walk = Walk::new(&Shape::new(&[64]).unwrap(), &[1, 1, 1].map(along));
        let tensors = |count| Tensors {
            at: [64, 1024, 2048],
            dtypes: [DType::F16; 3],
            results: 1,
            count,
            numbers: 0,
            in_turns: false,
            goes_across: false,
        };
        let plan = |count, strategy| {
            let plan = tensors(count).choose(&walk, 8, strategy, u64::MAX).plan(1, 128, 64);
            (plan.strategy, plan.lanes, plan.group, plan.replaced.is_some())
        };
        assert_eq!(plan(3, Strategy::Direct), (Strategy::Direct, 1, 1, false));
        assert_eq!(plan(3, Strategy::ExplicitParallel), (Strategy::ExplicitParallel, 1, GROUP, false));
        assert_eq!(plan(3, Strategy::RegisterCopy), (Strategy::RegisterCopy, 8, 1, false));
        assert_eq!(plan(3, Strategy::Auto), (Strategy::RegisterCopy, 8, 1, false));
        assert_eq!(plan(5, Strategy::ExplicitParallel), (Strategy::Direct, 1, 1, true));
    }

    #[test]
    fn a_tensor_without_elements_has_a_choice() {
        let steps = [[15, 1], [15, 1], [1, 0]].map(along_two);
        for sizes in [[4, 0], [0, 15], [0, 0]] {
            let walk = Walk::new(&Shape::new(&sizes).unwrap(), &steps);
            let tensors = Tensors {
                at: [64; 3],
                dtypes: [DType::F16; 3],
                results: 1,
                count: 3,
                numbers: 0,
                in_turns: false,
                goes_across: true,
            };
            assert_eq!(tensors.choose(&walk, 8, Strategy::Auto, u64::MAX).walk.numel(), 0, "{sizes:?}");
        }
    }

    #[test]
    fn flat_vectors_are_aligned_in_each_tensor_behind_one_head() {
        let head = |at| {
            let flat = compared(at, [16; 3]);
            (flat.class == Class::Flat).then(|| flat.plan(1, 128, 64).head)
        };
        assert_eq!([[8, 16, 32], [13, 26, 42], [9, 18, 34]].map(head), [Some(0), Some(3), Some(7)]);
        // The last ones are aligned by the result's vectors, which are shorter.
        assert_eq!([[8, 16, 34], [9, 16, 32], [8, 24, 32], [8, 16, 24]].map(head), [None; 4]);
    }

    #[test]
    fn a_result_that_is_written_in_steps_has_no_vectors() {
        let walk = Walk::new(&Shape::new(&[64]).unwrap(), &[2, 1, 0].map(along));
        let tensors = Tensors {
            at: [64, 1024, 2048],
            dtypes: [DType::F16; 3],
            results: 1,
            count: 3,
            numbers: 0,
            in_turns: false,
            goes_across: false,
        };
        assert_eq!(tensors.choose(&walk, 8, Strategy::Auto, u64::MAX).class, Class::Strided);
    }

    /// A number, one element for all, and a tensor that has no room in the cache.
    #[test]
    fn an_operand_has_one_bit_of_the_mode() {
        let walk = Walk::new(&Shape::new(&[1000]).unwrap(), &[1, 0, 0, 1].map(along));
        let tensors = Tensors {
            at: [64, 0, 192, 4096],
            dtypes: [DType::F16; 4],
            results: 1,
            count: 4,
            numbers: 1,
            in_turns: false,
            goes_across: false,
        };
        let mode = |room| tensors.choose(&walk, 8, Strategy::Auto, room).marks.mode(3);
        let marks = |last: u32| NUMBER | ONCE << 2 | last << 4;
        assert_eq!([mode(4000), mode(2000)], [marks(0), marks(PASSING)]);
        assert_eq!([0, 1, 2].map(|k| how(mode(2000), k)), [NUMBER, ONCE, PASSING]);
    }

    /// Each by the bytes of its own elements.
    #[test]
    fn tensors_of_a_part_begin_at_its_places() {
        let tensors = Tensors {
            at: [1000, 2000, 3000],
            dtypes: [DType::I8, DType::F16, DType::F32],
            results: 1,
            count: 3,
            numbers: 0,
            in_turns: false,
            goes_across: false,
        };
        assert_eq!(tensors.moved([5, -3, 1 << 31]).at, [1005, 1994, 3000 + (4 << 31)]);
    }

    /// A flat launch of vectors of 16 has up to 2^35 elements.
    #[test]
    fn the_head_of_many_elements_stays() {
        assert_eq!([0, 5, 1 << 32, (1 << 32) + 3].map(|n| head_within(7, n)), [0, 5, 7, 7]);
    }
}
