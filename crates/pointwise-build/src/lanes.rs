//! Which runs of cargo go one after another, and which side by side.

/// What a run of cargo takes, in seconds on the machine this was tried on: of a target of its own, of one that has most
/// entries from an older target, and the compilation of `core` before the first run in a target directory.
const FULL: u32 = 12;
const LIGHT: u32 = 4;
const CORE: u32 = 18;

/// The runs of a lane, which share a target directory for each target.
pub(crate) type Lane = Vec<Run>;

/// A run of cargo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The index of the target.
    pub(crate) target: usize,
    /// The index of the features.
    pub(crate) shard: usize,
}

/// Deals the runs for each target and shard to `width` lanes or fewer. `light` says of each target whether it has most
/// entries from an older one.
///
/// The same arguments give the same lanes, as cargo finds in a target directory what it compiled there before.
pub(crate) fn deal(light: &[bool], shards: usize, width: usize) -> Vec<Lane> {
    let mut lanes: Vec<(u32, Lane)> = vec![(0, Vec::new()); width.max(1)];
    let runs = |target: usize| (0..shards).map(move |shard| Run { target, shard });
    // A light target is all in one lane: `core` would take as long as the rest.
    for (target, _) in light.iter().enumerate().filter(|(_, light)| **light) {
        add(&mut lanes, runs(target).collect(), LIGHT);
    }
    // The first shard of each target before the second of any: they begin in different lanes.
    for shard in 0..shards {
        for (target, _) in light.iter().enumerate().filter(|(_, light)| !**light) {
            add(&mut lanes, vec![Run { target, shard }], FULL);
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).filter(|lane| !lane.is_empty()).collect()
}

/// Appends runs for one target to the lane that is done with them first.
fn add(lanes: &mut [(u32, Lane)], runs: Lane, each: u32) {
    let Some(first) = runs.first() else { return };
    let done = |(load, lane): &(u32, Lane)| {
        let begun = lane.iter().any(|run| run.target == first.target);
        load + each * runs.len() as u32 + if begun { 0 } else { CORE }
    };
    if let Some(lane) = lanes.iter_mut().min_by_key(|lane| done(lane)) {
        lane.0 = done(lane);
        lane.1.extend(runs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(lane: &Lane) -> Vec<usize> {
        let mut targets: Vec<usize> = lane.iter().map(|run| run.target).collect();
        targets.dedup();
        targets
    }

    #[test]
    fn each_run_once() {
        for (light, shards, width) in [
            (vec![false], 1, 8),
            (vec![false, true], 8, 2),
            (vec![false, true, true, false], 5, 3),
            (vec![false], 3, 0),
        ] {
            let lanes = deal(&light, shards, width);
            assert!(lanes.len() <= width.max(1) && lanes.iter().all(|lane| !lane.is_empty()));
            for target in 0..light.len() {
                for shard in 0..shards {
                    let run = Run { target, shard };
                    assert_eq!(lanes.iter().flatten().filter(|it| **it == run).count(), 1, "{run:?}");
                }
            }
        }
    }

    #[test]
    fn targets_begin_side_by_side() {
        let lanes = deal(&[false, false], 4, 2);
        assert_eq!(lanes.iter().map(targets).collect::<Vec<_>>(), [[0], [1]]);
        let lanes = deal(&[false, true], 1, 2);
        assert_eq!(lanes.iter().map(targets).collect::<Vec<_>>(), [[1], [0]]);
    }

    #[test]
    fn what_is_light_makes_room_for_what_is_not() {
        let lanes = deal(&[false, true], 8, 2);
        assert_eq!(lanes.iter().map(targets).collect::<Vec<_>>(), [vec![1, 0], vec![0]]);
        assert_eq!(lanes.iter().map(Vec::len).collect::<Vec<_>>(), [8 + 2, 6]);
    }
}
