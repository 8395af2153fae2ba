//! A report and peers that no machine made, for tests of table and figures.

use crate::form::Form;
use crate::peers::Peers;
use crate::report::{Busy, Machine, Measured, Report, Spread, Times, Timing};
use crate::sets::{self, Set};
use crate::workload::Row;
use pointwise_testkit::Random;

fn timing(bytes: u64, share: f64) -> Timing {
    let ceiling_us = 2.5 + bytes as f64 / 4.2e6;
    let us = ceiling_us / share;
    Timing { us, p10_us: us * 0.98, p90_us: us * 1.03, runs: 50, gb_per_s: bytes as f64 / us / 1e3, ceiling_us, share }
}

fn measured(row: &Row, random: &mut Random) -> Measured {
    let form = Form::of(row).unwrap();
    let bytes = form.bytes(row);
    let mut measured = crate::describe(row, bytes);
    let cold = timing(bytes, 1.01 - 0.12 * random.unit().powi(2));
    measured.times =
        Times { warm: Some(timing(bytes, 1.0)), cold: Some(cold), graph_us: Some(1.5), host_us: Some(3.0), busy: None };
    measured
}

/// Every row, with random times near an H200's.
pub(crate) fn report() -> Report {
    let mut random = Random::new(7);
    let mut rows: Vec<Measured> = sets::rows(Set::All).unwrap().iter().map(|row| measured(row, &mut random)).collect();
    rows[5].times = Times::default();
    rows[5].skipped = Some("no room".to_owned());
    Report {
        pointwise: "0.1.0".to_owned(),
        machine: Machine {
            device: "cuda:0".to_owned(),
            gpu: Some("Synthetic GPU".to_owned()),
            cuda: Some("13.0".to_owned()),
            l2_bytes: Some(50 << 20),
        },
        cupti: None,
        launch_floor: Some(Times { cold: Some(timing(8, 1.0)), ..Times::default() }),
        rows,
    }
}

/// The same with busy times: what events say, less what a launch takes.
pub(crate) fn report_with_busy() -> Report {
    let mut report = report();
    report.cupti = Some(130_001);
    for row in &mut report.rows {
        let Some(cold) = &row.times.cold else { continue };
        let less = |us: f64| us - 2.0;
        let spread = Spread { us: less(cold.us), p10_us: less(cold.p10_us), p90_us: less(cold.p90_us) };
        row.times.busy = Some(Busy { spread, runs: 50, kernels: 1 });
    }
    report
}

/// Times of three peers for the rows of the public run.
pub(crate) fn text() -> String {
    let mut random = Random::new(8);
    let mut text =
        r#"{"meta": {"gpu": "Another GPU", "torch": "2.11.0", "missing": {"tileops": "no wheel"}}}"#.to_owned();
    for row in report().rows.iter().filter(|row| row.set == "reference") {
        let Some(cold) = &row.times.cold else { continue };
        for peer in ["torch", "inductor", "triton"] {
            let us = cold.us * (0.97 + 0.5 * random.unit().powi(3));
            let id = serde_json::to_string(&row.row).unwrap();
            text += &format!("\n{{\"row\": {id}, \"peer\": {peer:?}, \"cold_us\": {us}, \"warm_us\": null}}");
            text += &format!("\n{{\"row\": {id}, \"peer\": {peer:?}, \"busy_us\": {}, \"kernels\": 1}}", us - 2.0);
        }
    }
    text
}

/// The same, read.
pub(crate) fn peers() -> Peers {
    Peers::parse(&text()).unwrap()
}
