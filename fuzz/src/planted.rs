//! Faults on purpose: the tests of this crate see that each is found.

use std::time::Duration;

use crate::case::{Case, Outcome};

pub(crate) fn run(case: &mut Case) -> Outcome {
    match case.number {
        1 => return Err("a wrong result".to_owned()),
        2 => panic!("a panic"),
        3 => std::process::abort(),
        4 => std::thread::sleep(Duration::from_secs(case.hang + 30)),
        // Beyond the limit, and touched.
        5 => drop(std::hint::black_box(vec![1_u8; 64 << 30])),
        6 => {
            let refused: Result<(), _> = Err("two\nlines");
            return case.any(refused);
        }
        7 => std::process::exit(7),
        // Few enough for a run that ends by its findings.
        8.. => return Err("another".to_owned()),
        _ => case.answers += 1,
    }
    Ok(())
}
