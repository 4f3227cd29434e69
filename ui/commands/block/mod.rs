//! `tdtool block`: measure one basic block, or a file of them.

mod args;

pub use args::BlockArgs;

use super::{print, to_json};
use crate::cli::Global;
use args::Format;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use tdtool::block::{self, Options, Profiler, Status, batch};
use tdtool::code::{Block, Location, Syntax, assemble, parse_hex, read_location};
use tdtool::{Error, Result};

pub fn run(global: &Global, args: BlockArgs) -> Result<ExitCode> {
    let options = args.options(global)?;
    if let (Some(input), Some(output)) = (&args.batch, &args.output) {
        // Rows have no place for counts.
        let options = Options { counts: false, ..options };
        return run_batch(input, output, &args, &options);
    }
    let report = match bytes(&args).and_then(|bytes| Block::decode(&bytes)) {
        Ok(block) => Profiler::new(options).measure(&block)?,
        Err(error) => return Err(error),
    };
    print(&match args.format {
        Format::Text => block::render(&report),
        Format::Json => to_json(&report)?,
        Format::Csv => format!("{}\n{}\n", block::HEADER, block::row(&report)),
    })?;
    Ok(match report.status {
        Status::Ok | Status::Unstable => ExitCode::SUCCESS,
        Status::Failed | Status::Rejected => ExitCode::FAILURE,
    })
}

/// The bytes of the one block asked for.
fn bytes(args: &BlockArgs) -> Result<Vec<u8>> {
    if let Some(text) = &args.asm {
        return assemble(text, if args.att { Syntax::Att } else { Syntax::Intel });
    }
    let text = args.block.as_deref().unwrap_or_default();
    match Location::parse(text) {
        Some((file, location)) => {
            let data = std::fs::read(file)
                .map_err(|e| Error::failed(format!("cannot read {file}")).because(e))?;
            Ok(read_location(&data, &location)?.1)
        }
        None => parse_hex(text),
    }
}

/// Rows in, rows out; each row is written whole, at once.
fn run_batch(input: &Path, output: &Path, args: &BlockArgs, options: &Options) -> Result<ExitCode> {
    let text = std::fs::read_to_string(input)
        .map_err(|e| Error::failed(format!("cannot read {}", input.display())).because(e))?;
    let rows = batch::inputs(&text);
    let failed = |e| Error::failed(format!("cannot write {}", output.display())).because(e);
    let done = if args.resume { finished(output, &rows)? } else { 0 };
    let mut file = if done > 0 {
        File::options().append(true).open(output).map_err(failed)?
    } else {
        let mut file = File::create(output).map_err(failed)?;
        writeln!(file, "{}", block::HEADER).map_err(failed)?;
        file
    };
    let mut progress = Progress::new(rows.len(), done);
    batch::run(&rows[done..], options, usize::from(args.jobs), |_, report| {
        let line = block::row(&report) + "\n";
        file.write_all(line.as_bytes()).map_err(failed)?;
        progress.step(report.status);
        Ok(true)
    })?;
    progress.end();
    Ok(ExitCode::SUCCESS)
}

/// Rows of `output` that are whole; a torn last line is cut off.
fn finished(output: &Path, rows: &[String]) -> Result<usize> {
    let Ok(text) = std::fs::read_to_string(output) else { return Ok(0) };
    let whole = text.rfind('\n').map_or(0, |i| i + 1);
    let mut lines = text[..whole].lines();
    if lines.next() != Some(block::HEADER) {
        return Err(Error::failed(format!("cannot resume {}", output.display()))
            .because("it was not written by this command")
            .hint("give another output file, or leave out --resume"));
    }
    let failed = |e| Error::failed(format!("cannot write {}", output.display())).because(e);
    let file = File::options().write(true).open(output).map_err(failed)?;
    file.set_len(whole as u64).map_err(failed)?;
    Ok(lines.count().min(rows.len()))
}

/// Rate and remaining time on standard error, where that is a terminal; a summary at the end.
struct Progress {
    start: Instant,
    shown: Instant,
    all: usize,
    before: usize,
    counts: [usize; 4],
}

impl Progress {
    fn new(all: usize, before: usize) -> Self {
        let now = Instant::now();
        Self { start: now, shown: now, all, before, counts: [0; 4] }
    }

    fn step(&mut self, status: Status) {
        self.counts[status as usize] += 1;
        if std::io::stderr().is_terminal() && self.shown.elapsed().as_millis() > 200 {
            self.shown = Instant::now();
            let done: usize = self.counts.iter().sum();
            let rate = done as f64 / self.start.elapsed().as_secs_f64();
            let left = (self.all - self.before - done) as f64 / rate;
            let mut err = std::io::stderr().lock();
            let at = self.before + done;
            let _ = write!(err, "\r{at}/{} blocks, {rate:.0}/s, {left:.0} s left   ", self.all);
        }
    }

    fn end(&self) {
        let done: usize = self.counts.iter().sum();
        let rate = done as f64 / self.start.elapsed().as_secs_f64();
        let [ok, unstable, failed, rejected] = self.counts;
        let mut err = std::io::stderr().lock();
        let clear = if std::io::stderr().is_terminal() { "\r" } else { "" };
        let _ = writeln!(
            err,
            "{clear}{done} blocks measured, {rate:.0}/s: {ok} ok, {unstable} unstable, {failed} \
             failed, {rejected} rejected"
        );
    }
}
