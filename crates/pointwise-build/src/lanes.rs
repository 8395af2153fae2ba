//! Runs cargo side by side, each in a target directory of its own.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{Error, parallel};

/// The file in a lane's folder with the names of its runs, a line each.
const RUNS: &str = "pointwise-runs";

/// A target directory, and the names of the runs that cargo has made in it.
struct Lane {
    folder: PathBuf,
    runs: String,
}

impl Lane {
    fn at(folder: PathBuf) -> Lane {
        let runs = fs::read_to_string(folder.join(RUNS)).unwrap_or_default();
        Lane { folder, runs }
    }

    fn has(&self, run: &str) -> bool {
        self.runs.lines().any(|line| line == run)
    }

    fn add(&self, run: &str) -> Result<(), Error> {
        let path = self.folder.join(RUNS);
        fs::create_dir_all(&self.folder)
            .and_then(|()| OpenOptions::new().create(true).append(true).open(&path))
            .and_then(|mut file| writeln!(file, "{run}"))
            .map_err(Error::io("cannot write", &path))
    }
}

/// Calls `work` for each of the `runs`, with its index and a target directory, in as many directories side by side as
/// there are processors. Returns the results in the order of the runs. A lane first takes the runs that it made in an
/// earlier build, as cargo finds the compiled crates there, then the first run that no lane has. After an error no run
/// begins.
pub(crate) fn map<R: Send>(
    folder: &Path,
    runs: &[String],
    work: impl Fn(usize, &Path) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    // With another number of processors the runs are dealt anew: else few lanes would have them all.
    let width = parallel::width();
    let lane = |number| Lane::at(folder.join(format!("lane-{number}-of-{width}")));
    let lanes: Vec<(usize, Lane)> = (0..width.min(runs.len())).map(|number| (number, lane(number))).collect();
    let owner = |run: &String| lanes.iter().position(|(_, lane)| lane.has(run));
    let owners: Vec<Option<usize>> = runs.iter().map(owner).collect();
    let begun: Vec<AtomicBool> = owners.iter().map(|owner| AtomicBool::new(owner.is_some())).collect();
    let failed = AtomicBool::new(false);
    let results = parallel::map(&lanes, |(number, lane)| {
        let mut own = (0..runs.len()).filter(|&run| owners[run] == Some(*number));
        let mut next = || own.next().or_else(|| (0..runs.len()).find(|&run| !begun[run].swap(true, Ordering::Relaxed)));
        let mut results = Vec::new();
        while !failed.load(Ordering::Relaxed)
            && let Some(run) = next()
        {
            let result = work(run, &lane.folder).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            if owners[run].is_none() {
                lane.add(&runs[run])?;
            }
            results.push((run, result));
        }
        Ok(results)
    })?;
    let mut results: Vec<(usize, R)> = results.into_iter().flatten().collect();
    results.sort_by_key(|(run, _)| *run);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_stays_where_it_was() {
        let folder = std::env::temp_dir().join(format!("pointwise-lanes-{}", std::process::id()));
        let runs: Vec<String> = (0..20).map(|run| format!("sm_80 {run}")).collect();
        let place = |run: usize, lane: &Path| Ok((run, lane.to_owned()));
        let first = map(&folder, &runs, place).unwrap();
        assert!(first.iter().enumerate().all(|(at, (run, lane))| at == *run && lane.starts_with(&folder)));
        let again = map(&folder, &runs[5..], place).unwrap();
        assert!(again.iter().zip(&first[5..]).all(|((_, again), (_, first))| again == first));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_error_ends_all() {
        let folder = std::env::temp_dir().join(format!("pointwise-failed-lanes-{}", std::process::id()));
        let runs: Vec<String> = (0..1000).map(|run| run.to_string()).collect();
        let work = |run: usize, _: &Path| if run == 0 { Err(Error::Settings("first".to_owned())) } else { Ok(run) };
        assert!(matches!(map(&folder, &runs, work), Err(Error::Settings(_))));
        fs::remove_dir_all(folder).unwrap_or_default();
    }
}
