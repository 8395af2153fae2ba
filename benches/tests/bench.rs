//! The program `bench`.

#[path = "../../crates/pointwise-cli/tests/common/mod.rs"]
mod common;

use std::fs;

use common::Folder;
use serde_json::{Value, json};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_bench");

/// A report of a few rows on the CPU, made by the program.
fn report(folder: &Folder) -> Value {
    let arguments =
        ["--device", "cpu", "--op", "^(silu|isnan)$", "--dtype", "f32", "--max-bytes", "4096", "--set", "all"];
    folder.run(&[&arguments[..], &["--json", "ours.json"]].concat()).succeeds();
    serde_json::from_slice(&fs::read(folder.path("ours.json")).unwrap()).unwrap()
}

/// The report as if of a GPU, where each row took so many microseconds.
fn on_a_gpu(report: &mut Value, us: f64) {
    report["machine"]["gpu"] = json!("GPU");
    report["machine"]["cuda"] = json!("13.0");
    let is_measured = |row: &&mut Value| row["skipped"].is_null();
    for row in report["rows"].as_array_mut().unwrap().iter_mut().filter(is_measured) {
        row["cold"] = row["warm"].take();
        row["cold"]["us"] = json!(us);
    }
}

#[test]
fn the_cpu_is_timed_by_the_clock() {
    let folder = Folder::new("bench-cpu");
    let report = report(&folder);
    assert_eq!(report["machine"]["device"], "cpu");
    assert!(report["launch_floor"]["warm"]["us"].as_f64().unwrap() > 0.0);
    let rows = report["rows"].as_array().unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row["row"].to_string()).collect();
    assert!(
        ids.contains(&"\"large/silu/f32\"".to_owned()) && ids.iter().any(|id| id.parse::<usize>().is_ok()),
        "{ids:?}"
    );
    for row in rows {
        assert!(["silu", "isnan"].contains(&row["op"].as_str().unwrap()) && row["dtype"] == "f32");
        if row["set"] == "sizes" && row["bytes"].as_u64().unwrap() > 4096 {
            assert!(
                row["skipped"].as_str().unwrap().contains("more than 4096 bytes") && row["warm"].is_null(),
                "{row}"
            );
            continue;
        }
        assert!(row["warm"]["us"].as_f64().unwrap() > 0.0 && row["cold"].is_null(), "{row}");
        assert!(row["bytes"].as_u64().unwrap() <= 4096 && row["skipped"].is_null(), "{row}");
    }
    assert!(rows.iter().any(|row| row["note"].as_str().is_some_and(|note| note.contains("shrunk from 16384x16384"))));
}

#[test]
fn a_report_is_shown_joined_and_drawn_without_a_device() {
    let folder = Folder::new("bench-from");
    let mut report = report(&folder);
    on_a_gpu(&mut report, 10.0);
    folder.write("gpu.json", report.to_string().as_bytes());
    let number = report["rows"].as_array().unwrap().iter().find_map(|row| row["row"].as_u64()).unwrap();
    let peers = [
        json!({ "meta": { "gpu": "GPU", "torch": "2.11.0", "missing": { "liger": "not installed" } } }),
        json!({ "row": number, "peer": "torch", "cold_us": 8.0, "p10_us": 7.0, "p90_us": 9.0, "warm_us": 5.0 }),
        json!({ "row": "large/silu/f32", "peer": "triton", "cold_us": 20.0, "warm_us": null, "note": "a note" }),
    ];
    folder.write("peers.jsonl", peers.map(|line| line.to_string()).join("\n").as_bytes());
    let arguments = ["--from", "gpu.json", "--peers", "peers.jsonl", "--figures", "svg", "--json", "joined.json"];
    let text = folder.run(&arguments).succeeds();
    for words in ["over the best peer", "liger      missing: not installed", "1 slower", "1 faster"] {
        assert!(text.contains(words), "no {words:?} in: {text}");
    }
    let joined: Value = serde_json::from_slice(&fs::read(folder.path("joined.json")).unwrap()).unwrap();
    let row = joined["rows"].as_array().unwrap().iter().find(|row| row["row"] == number).unwrap();
    assert_eq!(row["best_peer"], json!({ "peer": "torch", "us": 8.0, "ratio": 1.25, "tie": false }));
    for name in ["share.svg", "peers.svg", "sizes.svg"] {
        let text = fs::read_to_string(folder.path("svg").join(name)).unwrap();
        assert!(text.starts_with("<svg") && text.contains("GPU") && text.ends_with("</svg>\n"), "{name}");
    }
}

/// A part of a run of ours and of the peers on an H200.
#[test]
fn a_recorded_run_is_joined() {
    let folder = Folder::new("bench-recorded");
    folder.write("ours.json", include_bytes!("recorded/ours.json"));
    folder.write("peers.jsonl", include_bytes!("recorded/peers.jsonl"));
    let text = folder.run(&["--from", "ours.json", "--peers", "peers.jsonl", "--json", "joined.json"]).succeeds();
    for words in [
        "NVIDIA H200, CUDA 13.0",
        // The medians of ours and of Triton lie within both spreads.
        "relu hidden-state-prefill  f16       12.83  1.02 triton        12.96 0.99=  1.24",
        "gelu llama-8b-ffn-prefill  f16       33.70  0.95 torch         41.30  0.82  0.70",
        "reference: 4 of 4 rows measured",
        "over the best published time, fair rows, events over busy times: 1.392 (geometric mean of 3)",
        "over the best peer: 1.148 (geometric mean of 4), 1 slower, 2 faster, 1 within 2 %",
        "PyTorch 2.11.0+cu130, its copy 4257 GB/s, a call of one element 3.87 us",
        "tileops    missing: ModuleNotFoundError: No module named 'tileops'",
    ] {
        assert!(text.contains(words), "no {words:?} in: {text}");
    }
    let joined: Value = serde_json::from_slice(&fs::read(folder.path("joined.json")).unwrap()).unwrap();
    let row = &joined["rows"][0];
    assert_eq!((&row["best_peer"]["peer"], &row["best_peer"]["tie"]), (&json!("triton"), &json!(true)));
    assert!(row["best_busy"].is_null() && joined["cupti"].is_null(), "{row}");
    // A joined report can be joined again.
    folder.run(&["--from", "joined.json", "--peers", "peers.jsonl"]).succeeds();
}

#[test]
fn busy_times_are_shown_where_both_sides_have_them() {
    let folder = Folder::new("bench-busy");
    let mut ours: Value = serde_json::from_slice(include_bytes!("recorded/ours.json")).unwrap();
    let busy = json!({ "us": 10.0, "p10_us": 9.9, "p90_us": 10.2, "runs": 50, "kernels": 1 });
    ours["rows"][0]["busy"] = busy;
    folder.write("ours.json", ours.to_string().as_bytes());
    let mut peers = include_str!("recorded/peers.jsonl").to_owned();
    for (peer, us) in [("torch", 10.1), ("inductor", 12.5)] {
        peers += &json!({ "row": 0, "peer": peer, "busy_us": us, "busy_p10_us": 9.8, "busy_p90_us": 13.0 }).to_string();
        peers += "\n";
    }
    folder.write("peers.jsonl", peers.as_bytes());
    let text = folder.run(&["--from", "ours.json", "--peers", "peers.jsonl", "--figures", "svg"]).succeeds();
    let published = 10.0 / 10.32;
    for words in [
        "its us ratio  busy publ.",
        &format!(" 12.96 0.99= 0.99=  {published:.2}"),
        "over the best peer, busy times: 0.990 (geometric mean of 1)",
        "inductor   0.800 (geometric mean of 1), 0 slower, 1 faster, 0 within 2 %; busy times",
        "fair rows, busy times: 0.969 (geometric mean of 1)",
    ] {
        assert!(text.contains(words), "no {words:?} in: {text}");
    }
    assert!(fs::read_to_string(folder.path("svg").join("peers.svg")).unwrap().contains("busy time over the fastest"));
}

/// The disk is full, or the program is killed, while the report is written over the one that it is made from.
#[cfg(unix)]
#[test]
fn an_earlier_report_survives_a_write_that_fails() {
    let folder = Folder::new("bench-full");
    let earlier = include_bytes!("recorded/ours.json");
    assert!(earlier.len() > 1024, "the limit below");
    folder.write("ours.json", earlier);
    folder.write("peers.jsonl", include_bytes!("recorded/peers.jsonl"));
    fs::create_dir(folder.path("svg")).unwrap();
    folder.write("svg/share.svg", b"old");
    let limited = |signal: &str, output: &str| {
        // Files of one block: what is beyond fails, or kills where the signal is not ignored.
        let script =
            format!("{signal} ulimit -c 0; ulimit -f 1; exec {PROGRAM} --from ours.json --peers peers.jsonl {output}");
        std::process::Command::new("sh").args(["-c", &script]).current_dir(folder.path("")).output().unwrap()
    };
    let kept = ["ours.json", "peers.jsonl", "svg"];
    for (output, words) in
        [("--json ours.json", "cannot write ours.json"), ("--figures svg", "cannot write svg/share.svg")]
    {
        common::Done::of(limited("trap '' XFSZ;", output), &[output]).fails(1, &[words]);
        assert_eq!(folder.names(), kept);
        assert!(limited("", output).status.code().is_none(), "{output}: not killed");
        assert_eq!(fs::read(folder.path("ours.json")).unwrap(), earlier, "{output}");
        assert_eq!(fs::read(folder.path("svg/share.svg")).unwrap(), b"old", "{output}");
        for left in folder.names().iter().filter(|name| name.ends_with(".tmp")) {
            fs::remove_file(folder.path(left)).unwrap();
        }
    }
}

/// A target that cannot be replaced is written in place, and a link stays a link.
#[cfg(unix)]
#[test]
fn reports_go_where_they_are_sent() {
    let folder = Folder::new("bench-link");
    folder.write("ours.json", include_bytes!("recorded/ours.json"));
    folder.write("real.json", b"old");
    std::os::unix::fs::symlink("real.json", folder.path("link.json")).unwrap();
    folder.run(&["--from", "ours.json", "--json", "link.json"]).succeeds();
    assert!(fs::symlink_metadata(folder.path("link.json")).unwrap().is_symlink());
    assert!(fs::read(folder.path("real.json")).unwrap().starts_with(b"{"));
    let text = folder.run(&["--from", "ours.json", "--json", "/dev/stdout"]).succeeds();
    assert!(text.contains("\"launch_floor\""), "{text}");
    folder.run(&["--from", "ours.json", "--json", "svg/.."]).fails(1, &["cannot write svg/.."]);
    assert_eq!(folder.names(), ["link.json", "ours.json", "real.json"]);
}

/// Numbers and names of a report that nobody measured: an error or a figure, in finite time.
#[test]
fn reports_that_make_no_sense() {
    let folder = Folder::new("bench-nonsense");
    let recorded: Value = serde_json::from_slice(include_bytes!("recorded/ours.json")).unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut report = recorded.clone();
        report["rows"].as_array_mut().unwrap().retain(|row| !row["cold"].is_null());
        report["rows"].as_array_mut().unwrap().truncate(1);
        change(&mut report["rows"][0]);
        folder.write("ours.json", report.to_string().as_bytes());
        folder.run(&["--from", "ours.json", "--figures", "svg"])
    };
    for size in ["0", "-5", "nan", "inf", "1e300"] {
        let done = changed(&|row| {
            row["set"] = json!("sizes");
            row["case"] = json!(size);
        });
        done.fails(1, &["no row is fit for a figure"]);
    }
    for (time, value) in [
        ("us", json!(0.0)),
        ("us", json!(-1.0)),
        ("share", json!(-1.0)),
        ("gb_per_s", json!(-1e308)),
        ("gb_per_s", json!(1.7e308)),
    ] {
        let done = changed(&|row| {
            row["set"] = json!("sizes");
            row["case"] = json!("1024");
            row["cold"][time] = value.clone();
        });
        done.fails(1, &["ours.json: row ", "has a time of 0 or less, or a speed that nothing has"]);
    }
    changed(&|row| row["busy"] = json!({ "us": 0.0, "p10_us": 0.0, "p90_us": 0.0, "runs": 0, "kernels": 0 }))
        .fails(1, &["has a time of 0 or less"]);
    let text = changed(&|row| {
        row["set"] = json!("large");
        row["op"] = json!("o".repeat(3_000_000));
        row["dtype"] = json!("d".repeat(3_000_000));
    })
    .succeeds();
    assert!(text.contains("svg/share.svg"));
}

#[test]
fn calls_that_make_no_sense() {
    let folder = Folder::new("bench-calls");
    folder.run(&["--op", "("]).fails(2, &["--op"]);
    folder.run(&["--set", "huge"]).fails(2, &["huge"]);
    folder.run(&["--dtype", "f64"]).fails(2, &["bf16"]);
    folder.run(&["--device", "gpu"]).fails(2, &["cuda:N"]);
    folder.run(&["--from", "a.json", "--device", "cpu"]).fails(2, &["--from"]);
    folder.run(&["--device", "cpu", "--op", "^frobnicate$"]).fails(2, &["no row"]);
    for bytes in ["0", "1k", "-1"] {
        let arguments = format!("--max-bytes={bytes}");
        folder.run(&["--device", "cpu", &arguments]).fails(2, &["--max-bytes", "number of bytes"]);
    }
    folder.run(&["--clock", "sundial"]).fails(2, &["cupti"]);
    folder.run(&["--device", "cpu", "--clock", "cupti"]).fails(2, &["for GPUs"]);
    folder.run(&["--device", "cpu", "--libcupti", "x.so"]).fails(2, &["--clock cupti"]);
    folder.run(&["--from", "a.json", "--clock", "cupti"]).fails(2, &["--from"]);
    folder.run(&["--from", "nowhere.json"]).fails(1, &["cannot read nowhere.json"]);
    folder.run(&["--device", "cpu", "--json", "no/where.json"]).fails(1, &["cannot write no/where.json"]);
    folder.write("file", b"");
    folder
        .run(&["--device", "cpu", "--set", "large", "--figures", "file/x"])
        .fails(1, &["cannot make the folder file/x"]);
    // Found before anything is measured, and no folder is made.
    for set in [&[][..], &["--set", "reference"]] {
        let arguments = [&["--device", "cpu", "--figures", "svg"], set].concat();
        folder.run(&arguments).fails(2, &["no row asked for is fit for a figure", "--set large or sizes"]);
    }
    folder.write("broken.json", b"{\"rows\": [");
    folder.run(&["--from", "broken.json"]).fails(1, &["broken.json is no report"]);
    folder.run(&["--device", "cpu", "--peers", "broken.json"]).fails(1, &["broken.json", "meta"]);
    assert_eq!(folder.names(), ["broken.json", "file"]);
}

#[test]
fn cuda_without_a_driver() {
    let folder = Folder::new("bench-cuda");
    let mut command = folder.command(&["--device", "cuda:63"]);
    let output = command.env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    common::Done::of(output, &["--device", "cuda:63"]).fails(1, &[]);
}
