//! `pointwise bench`: what the ops take beside a copy, and beside other libraries.

mod args;
mod call;
mod figures;
mod form;
mod inputs;
mod measure;
mod peers;
mod report;
mod sets;
#[cfg(test)]
mod synthetic;
mod table;
mod workload;

use std::fs;
use std::io::Write;
use std::path::Path;

use pointwise::{DType, Device, Tensor, ops};

pub(crate) use args::Bench;

use call::Ran;
use form::Form;
use inputs::Inputs;
use measure::Gauge;
use peers::Peers;
use report::{Machine, Measured, Report, Times};
use sets::Set;
use table::Table;
use workload::Row;

use crate::error::{Error, Result};
use crate::output::{Paint, flush, line};
use crate::progress;
use crate::run::device;

/// The most bytes that a row moves on the CPU, unless another number is given.
const CPU_BYTES: u64 = 16 << 20;

/// Runs the command.
///
/// # Errors
/// Those of files and of the device. A row that cannot be measured is no error: the report says why.
pub(crate) fn bench(out: &mut impl Write, args: &Bench) -> Result<()> {
    // What is written at the end is found to be writable at the beginning.
    args.json.as_deref().map(check_writable).transpose()?;
    if let Some(folder) = &args.figures {
        fs::create_dir_all(folder)
            .map_err(|error| Error::Failed(format!("cannot make the folder {}: {error}", folder.display())))?;
    }
    let peers = args.peers.as_deref().map(Peers::read).transpose()?;
    let table = Table { peers: peers.is_some(), paint: Paint::for_stdout() };
    let mut report = match &args.from {
        Some(path) => recall(out, path, args, peers.as_ref(), table)?,
        None => measure(out, args, peers.as_ref(), table)?,
    };
    if report.rows.is_empty() {
        return Err(Error::Usage("no row of the set has this op and element type".to_owned()));
    }
    if let Some(peers) = &peers {
        peers.join(&mut report);
    }
    table::summary(out, &report, peers.as_ref(), table)?;
    if let Some(path) = &args.json {
        report.write(path)?;
    }
    if let Some(folder) = &args.figures {
        line(out, "")?;
        for path in figures::draw(&report, folder)? {
            line(out, path.display().to_string())?;
        }
    }
    flush(out)
}

/// That a file can be written, which stays as it is.
fn check_writable(path: &Path) -> Result<()> {
    let was_there = path.exists();
    let fault = |error| Error::Failed(format!("cannot write {}: {error}", path.display()));
    fs::File::options().create(true).append(true).open(path).map_err(fault)?;
    if was_there { Ok(()) } else { fs::remove_file(path).map_err(fault) }
}

fn is_asked(args: &Bench, op: &str, dtype: &str) -> bool {
    args.op.as_ref().is_none_or(|op_is| op_is.is_match(op)) && args.dtype.is_none_or(|asked| asked.name() == dtype)
}

/// Shows an earlier report.
fn recall(out: &mut impl Write, path: &Path, args: &Bench, peers: Option<&Peers>, table: Table) -> Result<Report> {
    let mut report = Report::read(path)?;
    let of_set = |row: &Measured| args.set.is_none_or(|set| set.has(&row.set));
    report.rows.retain(|row| of_set(row) && is_asked(args, &row.op, &row.dtype));
    if let Some(peers) = peers {
        peers.join(&mut report);
    }
    title(out, &report.machine)?;
    line(out, table.head())?;
    for row in &report.rows {
        line(out, table.row(row))?;
    }
    Ok(report)
}

fn title(out: &mut impl Write, machine: &Machine) -> Result<()> {
    match (&machine.gpu, &machine.cuda) {
        (Some(gpu), Some(cuda)) => line(out, format!("{gpu}, CUDA {cuda}; medians of events around single launches."))?,
        _ => line(out, "The CPU, by the clock, warm: for the times of models take a GPU.")?,
    }
    line(out, "share: of the speed of a copy of the same bytes; publ.: over the best published time.")?;
    line(out, "")
}

fn measure(out: &mut impl Write, args: &Bench, peers: Option<&Peers>, table: Table) -> Result<Report> {
    let mut rows = sets::rows(args.set.unwrap_or(Set::Reference))?;
    rows.retain(|row| is_asked(args, &row.op, row.dtype.name()));
    let device = device(&args.device)?;
    let machine = Machine {
        device: device.to_string(),
        gpu: device.info().map(|info| info.name.clone()),
        cuda: device.info().map(|info| format!("{}.{}", info.driver.0, info.driver.1)),
        l2_bytes: device.info().map(|info| info.l2_bytes as u64),
    };
    title(out, &machine)?;
    let most = args.max_bytes.unwrap_or(if device.is_cpu() { CPU_BYTES } else { u64::MAX });
    let mut gauge = Gauge::new(&device)?;
    let mut inputs = Inputs::new(&device);
    let launch_floor = Some(floor(&device, &mut gauge)?);
    line(out, table.head())?;
    let bar = progress::of_steps("measuring", rows.len() as u64);
    let mut all = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut measured = of_row(&mut inputs, &mut gauge, row, most);
        if let (Some(peers), Some(cold)) = (peers, &measured.times.cold) {
            measured.best_peer = peers.best(&measured.row, cold.us);
        }
        line(out, table.row(&measured))?;
        flush(out)?;
        all.push(measured);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Report { pointwise: env!("CARGO_PKG_VERSION").to_owned(), machine, launch_floor, rows: all })
}

/// One element.
fn floor(device: &Device, gauge: &mut Gauge) -> Result<Times> {
    let x = Tensor::zeros(device, DType::F32, [1])?;
    let mut y = Tensor::empty(device, DType::F32, [1])?;
    gauge.measure(&mut || ops::silu_into(&x, &mut y), 8, false)
}

/// Measures a row, or says why not.
fn of_row(inputs: &mut Inputs, gauge: &mut Gauge, row: &Row, most: u64) -> Measured {
    let form = match Form::of(row) {
        Ok(form) => form,
        Err(error) => return Measured { skipped: Some(error.to_string()), ..describe(row, 0) },
    };
    let whole = form.bytes(row);
    if row.set == "sizes" && whole > most {
        return Measured { skipped: Some(format!("more than {most} bytes")), ..describe(row, whole) };
    }
    let small = row.within(&form, most);
    let bytes = form.bytes(&small);
    let mut measured = describe(&small, bytes);
    let run = |call: &mut call::Call<'_>, ran| Ok((gauge.measure(call, bytes, form.writes_only())?, ran));
    match call::with(inputs, &small, &form, run) {
        Ok((times, Ran { strategy, note })) => {
            measured.times = times;
            measured.strategy = strategy.map(|strategy| strategy.name().to_owned());
            measured.note = note;
        }
        Err(error) => measured.skipped = Some(crate::error::one_line(&error.to_string())),
    }
    if small.shapes != row.shapes {
        let note = format!("shrunk from {}", row.shapes_text());
        measured.note = Some(measured.note.map_or(note.clone(), |first| format!("{first}; {note}")));
        // Its times are of the whole.
        measured.published = None;
    }
    measured
}

/// A row without times.
fn describe(row: &Row, bytes: u64) -> Measured {
    Measured {
        row: row.id.clone(),
        set: row.set.to_owned(),
        op: row.op.clone(),
        case: row.case.clone(),
        dtype: row.dtype.name().to_owned(),
        shapes: row.shapes_text(),
        params: row.params_text(),
        bytes,
        strategy: None,
        note: None,
        skipped: None,
        times: Times::default(),
        published: row.published.clone(),
        best_peer: None,
    }
}
