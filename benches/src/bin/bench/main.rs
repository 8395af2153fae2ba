//! Times the ops beside a copy, and beside other libraries: `bench --help`, docs/bench.md.

mod args;
mod call;
mod cupti;
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
use std::process::ExitCode;

use pointwise::{DType, Device, Tensor, ops};

use args::{Args, ClockSource};
use call::Ran;
use cupti::Cupti;
use form::Form;
use inputs::Inputs;
use measure::Gauge;
use peers::Peers;
use report::{Busy, Clock, Machine, Measured, Report, Times};
use sets::Set;
use table::Table;
use workload::Row;

use pointwise_cli::device::device;
use pointwise_cli::error::{Error, Result};
use pointwise_cli::output::{Paint, flush, line};
use pointwise_cli::{draft, program, progress};

/// The most bytes that a row moves on the CPU, unless another number is given.
const CPU_BYTES: u64 = 16 << 20;

fn main() -> ExitCode {
    program::run(|args, out| bench(out, args))
}

/// Runs the program.
///
/// # Errors
/// The errors of files and of the device. A row that cannot be measured is no error: the report gives the reason.
fn bench(out: &mut impl Write, args: &Args) -> Result<()> {
    // Checks at the beginning that the file can be written at the end.
    args.json.as_deref().map(check_writable).transpose()?;
    let peers = args.peers.as_deref().map(Peers::read).transpose()?;
    let mut table = Table { peers: peers.is_some(), busy: false, paint: Paint::for_stdout() };
    let source = match &args.from {
        Some(path) => Source::Report(Box::new(recall(path, args)?)),
        None => asked(args, peers.is_some())?,
    };
    if let Some(folder) = &args.figures {
        fs::create_dir_all(folder)
            .map_err(|error| Error::Failed(format!("cannot make the folder {}: {error}", folder.display())))?;
    }
    let mut report = match source {
        Source::Report(report) => *report,
        Source::Rows(rows, device) => measure(out, args, (&rows, device), peers.as_ref(), table)?,
    };
    if let Some(peers) = &peers {
        peers.join(&mut report);
    }
    table.busy = report.published_clock() == Clock::Busy;
    if args.from.is_some() {
        show(out, &report, table)?;
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

/// The source of the results.
enum Source {
    Report(Box<Report>),
    /// Rows to measure on a device.
    Rows(Vec<Row>, Device),
}

/// The rows to measure. Figures that none of them is fit for are found out here.
fn asked(args: &Args, has_peers: bool) -> Result<Source> {
    let mut rows = sets::rows(args.set.unwrap_or(Set::Reference))?;
    rows.retain(|row| is_asked(args, &row.op, row.dtype.name()));
    some(&rows)?;
    let device = device(&args.device)?;
    // Reference rows are drawn against the peers' times, which are a GPU's.
    let is_drawn = |row: &Row| row.set != "reference" || has_peers && device.is_cuda();
    if args.figures.is_some() && !rows.iter().any(is_drawn) {
        let peers = if device.is_cuda() { "give --peers FILE, or " } else { "" };
        let why = "--figures: no row asked for is fit for a figure";
        return Err(Error::Usage(format!("{why}: {peers}measure rows of --set large or sizes, or --set all")));
    }
    Ok(Source::Rows(rows, device))
}

/// Checks that there are rows.
fn some<T>(rows: &[T]) -> Result<()> {
    let none = || Error::Usage("no row of the set has this op and element type".to_owned());
    rows.first().map(|_| ()).ok_or_else(none)
}

/// Checks that a file can be written, without changing it.
fn check_writable(path: &Path) -> Result<()> {
    draft::check(path).map_err(|error| Error::Failed(format!("cannot write {}: {error}", path.display())))
}

fn is_asked(args: &Args, op: &str, dtype: &str) -> bool {
    args.op.as_ref().is_none_or(|op_is| op_is.is_match(op)) && args.dtype.is_none_or(|asked| asked.name() == dtype)
}

/// The rows asked for of an earlier report.
fn recall(path: &Path, args: &Args) -> Result<Report> {
    let mut report = Report::read(path)?;
    let of_set = |row: &Measured| args.set.is_none_or(|set| set.has(&row.set));
    report.rows.retain(|row| of_set(row) && is_asked(args, &row.op, &row.dtype));
    some(&report.rows)?;
    Ok(report)
}

/// Writes the table of a whole report.
fn show(out: &mut impl Write, report: &Report, table: Table) -> Result<()> {
    title(out, &report.machine, report.published_clock())?;
    line(out, table.head())?;
    for row in &report.rows {
        line(out, table.row(row))?;
    }
    Ok(())
}

fn title(out: &mut impl Write, machine: &Machine, published: Clock) -> Result<()> {
    match (&machine.gpu, &machine.cuda) {
        (Some(gpu), Some(cuda)) => line(out, format!("{gpu}, CUDA {cuda}; medians of events around single launches."))?,
        _ => line(out, "The CPU, by the clock, warm: for the times of models take a GPU.")?,
    }
    match published {
        Clock::Events | Clock::Warm | Clock::Graph | Clock::Host => line(
            out,
            "share: of the speed of a copy of the same bytes; publ.: over the best published time.\n\
             That is CUPTI's busy time, without the 3 us of a launch: --clock cupti measures ours.",
        )?,
        Clock::Busy => line(
            out,
            "share: of the speed of a copy of the same bytes; busy, busy us: CUPTI's, without the\n\
             launch; publ.: our busy time over the best published one.",
        )?,
    }
    line(out, "")
}

/// CUPTI, if it is asked for.
fn cupti(args: &Args, device: &Device) -> Result<Option<Cupti>> {
    match args.clock {
        ClockSource::Events if args.libcupti.is_some() => Err(Error::Usage("--libcupti is for --clock cupti".into())),
        ClockSource::Events => Ok(None),
        ClockSource::Cupti if device.is_cpu() => Err(Error::Usage("--clock cupti is for GPUs".into())),
        ClockSource::Cupti => Cupti::load(args.libcupti.as_deref()).map(Some),
    }
}

fn measure(
    out: &mut impl Write,
    args: &Args,
    (rows, device): (&[Row], Device),
    peers: Option<&Peers>,
    table: Table,
) -> Result<Report> {
    // A library that is not there is found to be missing at the beginning.
    let cupti = cupti(args, &device)?;
    let machine = Machine {
        device: device.to_string(),
        gpu: device.info().map(|info| info.name.clone()),
        cuda: device.info().map(|info| format!("{}.{}", info.driver.0, info.driver.1)),
        l2_bytes: device.info().map(|info| info.l2_bytes as u64),
    };
    title(out, &machine, Clock::Events)?;
    let most = args.max_bytes.unwrap_or(if device.is_cpu() { CPU_BYTES } else { u64::MAX });
    let mut gauge = Gauge::new(&device)?;
    let mut inputs = Inputs::new(&device);
    let launch_floor = Some(with_floor(&device, |call| gauge.measure(call, 8, false))?);
    line(out, table.head())?;
    let bar = progress::of_steps("measuring", rows.len() as u64);
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let mut measured = of_row(&mut inputs, &mut gauge, row, most);
        if let Some(peers) = peers {
            peers.join_row(&mut measured);
        }
        line(out, table.row(&measured))?;
        flush(out)?;
        all.push(measured);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let pointwise = env!("CARGO_PKG_VERSION").to_owned();
    let mut report = Report { pointwise, machine, cupti: None, launch_floor, rows: all };
    if let Some(cupti) = &cupti {
        // After all events: what CUPTI has once recorded it may slow down for good.
        busy_times(out, &mut report, rows, most, (&mut inputs, &mut gauge, cupti))?;
    }
    Ok(report)
}

/// Puts busy times into a report of these rows.
fn busy_times(
    out: &mut impl Write,
    report: &mut Report,
    rows: &[Row],
    most: u64,
    (inputs, gauge, cupti): (&mut Inputs, &mut Gauge, &Cupti),
) -> Result<()> {
    let device = *inputs.device();
    match with_floor(&device, |call| gauge.busy(cupti, call, 0.0)) {
        Ok(busy) => {
            report.cupti = Some(cupti.version);
            if let Some(floor) = &mut report.launch_floor {
                floor.busy = busy;
            }
        }
        // The times by events are there, and stay.
        Err(error) => return line(out, format!("\nNo busy times: {error}")),
    }
    let bar = progress::of_steps("busy times", rows.len() as u64);
    for (row, measured) in rows.iter().zip(&mut report.rows) {
        bar.inc(1);
        let Some(us) = measured.times.cold.as_ref().map(|cold| cold.us) else { continue };
        match busy_of_row(inputs, gauge, cupti, row, most, us) {
            Ok(busy) => measured.times.busy = busy,
            Err(error) => {
                let why = format!("no busy time: {}", pointwise_cli::error::one_line(&error.to_string()));
                measured.note = Some(measured.note.take().map_or(why.clone(), |first| format!("{first}; {why}")));
            }
        }
    }
    bar.finish_and_clear();
    let missing = report.rows.iter().filter(|row| row.times.cold.is_some() && row.times.busy.is_none()).count();
    if missing > 0 {
        line(out, format!("\n{missing} rows have no busy time: their notes say why"))?;
    }
    Ok(())
}

fn busy_of_row(
    inputs: &mut Inputs,
    gauge: &mut Gauge,
    cupti: &Cupti,
    row: &Row,
    most: u64,
    us: f64,
) -> Result<Option<Busy>> {
    let form = Form::of(row)?;
    let small = row.within(&form, most);
    call::with(inputs, &small, &form, |call, _| gauge.busy(cupti, call, us))
}

/// Hands the call of one element to `measure`.
fn with_floor<R>(device: &Device, measure: impl FnOnce(&mut call::Call<'_>) -> Result<R>) -> Result<R> {
    let x = Tensor::zeros(device, DType::F32, [1])?;
    let mut y = Tensor::empty(device, DType::F32, [1])?;
    measure(&mut || ops::silu_into(&x, &mut y))
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
        Err(error) => measured.skipped = Some(pointwise_cli::error::one_line(&error.to_string())),
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
        best_busy: None,
        best_warm: None,
        best_graph: None,
        best_host: None,
    }
}
