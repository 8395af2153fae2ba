//! Spreads independent work over threads.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

/// Returns the number of threads that can run side by side.
pub(crate) fn width() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `work` for each item, on at most [`width`] threads. Returns the results in the order of the items, or the
/// first error in that order. After an error no further item begins.
pub(crate) fn map<T, R, E>(items: &[T], work: impl Fn(&T) -> Result<R, E> + Sync) -> Result<Vec<R>, E>
where
    T: Sync,
    R: Send,
    E: Send,
{
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<R, E>)>> = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..width().min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let result = work(item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn keeps_order_and_finds_errors() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(map::<_, _, ()>(&items, |x| Ok(x * 2)), Ok(items.iter().map(|x| x * 2).collect()));
        assert_eq!(map(&items, |&x| if x == 7 { Err(x) } else { Ok(x) }), Err(7));
        assert_eq!(map::<u32, u32, ()>(&[], |_| Err(())), Ok(vec![]));
    }
}
