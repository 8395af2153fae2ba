//! Random numbers.

/// The random numbers of a case.
#[derive(Clone, Debug)]
pub(crate) struct Random(pointwise_testkit::Random);

impl Random {
    /// The stream of a case.
    pub(crate) fn of(seed: u64, case: u64) -> Random {
        let mixed = pointwise_testkit::Random::new(seed).next_u64();
        Random(pointwise_testkit::Random::new(mixed ^ case.wrapping_mul(0xD134_2543_DE82_EF95)))
    }

    /// The next 64 bits.
    pub(crate) fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`; 0 if that is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// An entry of a list that is not empty.
    pub(crate) fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    /// The numbers below `n` in any order.
    pub(crate) fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}
