//! Decides where the report goes and in which form, and writes files made from all documents of a measurement at
//! its end: a page, or input of other tools.

use super::arguments::{Format, ReportArgs};
use crate::message::note;
use crate::terminal;
use engine::phases;
use report::documents::Report;
use report::files::{is_stdout, not_written, write_whole};
use report::render::page::page;
use report::render::report::{Style, csv, render};
use report::render::{json, over_time};
use std::fs::{File, FileType, OpenOptions};
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// Columns of text if the output is not a terminal.
const PLAIN_WIDTH: usize = 100;
/// Fewest columns that text is fitted to.
const NARROWEST: usize = 40;

/// An open destination.
pub struct Destination {
    to: To,
    name: Option<PathBuf>,
    format: Format,
    style: Style,
    /// There are several documents: JSON is then one per line.
    stream: bool,
    documents: usize,
    /// Files written when all documents are there.
    collected: Collected,
    /// Nothing is shown but these files.
    page_only: bool,
    /// The file still has its old content.
    untouched: bool,
}

/// A file keeps its content until there is a report to replace it.
enum To {
    Stream(&'static str, Box<dyn Write>),
    /// Reports of intervals, one after the other.
    File(File),
    /// All reports so far: the file is replaced by them.
    Whole(PathBuf, String),
}

/// A standard stream, and what it is.
struct Stream {
    name: &'static str,
    out: Box<dyn Write>,
    is_terminal: bool,
    columns: Option<usize>,
}

impl Stream {
    fn of(name: &'static str, out: impl Write + IsTerminal + AsFd + 'static) -> Self {
        let (is_terminal, columns) = (out.is_terminal(), terminal::columns(&out));
        Self { name, out: Box::new(out), is_terminal, columns }
    }
}

impl Destination {
    /// Opens the destination before anything runs, so that a long measurement does not end in
    /// "permission denied". A file keeps its content until the first document is written.
    pub fn open(args: &ReportArgs, ascii: bool) -> Result<Self> {
        let collected = Collected::open(args)?;
        let path = args.output.as_ref().filter(|p| p.as_os_str() != "-");
        // Standard output is the command's, as with `perf stat`.
        let beside =
            args.output.is_none() && args.format == Format::Text && !args.command.is_empty();
        let stream = match beside {
            true => Stream::of("standard error", std::io::stderr()),
            false => Stream::of("standard output", std::io::stdout()),
        };
        let is_terminal = path.is_none() && stream.is_terminal;
        let to = match path {
            None => To::Stream(stream.name, stream.out),
            Some(path) => {
                let is_new = !path.exists();
                let file = match path.metadata().is_ok_and(|found| !found.is_file()) {
                    true => tma::files::open_stream(path),
                    false => OpenOptions::new().write(true).create(true).truncate(false).open(path),
                };
                let file = file.map_err(|e| {
                    let what = format!("cannot write the report to {}", path.display());
                    not_written(what, path, &e, "--output")
                })?;
                // A pipe's reader would leave if it were opened twice.
                let is_file = file.metadata().is_ok_and(|found| found.is_file());
                match args.interval {
                    None if is_file => {
                        if is_new {
                            // It was only to see whether it can be written.
                            let _ = std::fs::remove_file(path);
                        }
                        To::Whole(path.clone(), String::new())
                    }
                    _ => To::File(file),
                }
            }
        };
        let columns = stream.columns.filter(|_| is_terminal);
        let style = Style {
            color: is_terminal && terminal::allows_color() && terminal::has_attributes(),
            ascii,
            width: columns.unwrap_or(PLAIN_WIDTH).clamp(NARROWEST, 120),
            fits: columns.is_some(),
            verbose: args.verbose,
            quiet: terminal::is_quiet(),
            all_code: args.code.functions.is_some() || args.code.blocks.is_some(),
        };
        let stream = args.interval.is_some();
        let name = path.cloned();
        Ok(Self {
            to,
            name,
            format: args.format,
            style,
            stream,
            documents: 0,
            collected,
            page_only: args.page_only(),
            untouched: true,
        })
    }

    /// Writes one document and flushes it.
    pub fn document(&mut self, report: &Report) -> Result<()> {
        self.collected.add(report);
        if self.page_only {
            return Ok(());
        }
        let text = match self.format {
            Format::Text => {
                let gap = if self.documents > 0 { "\n" } else { "" };
                format!("{gap}{}", render(report, &self.style))
            }
            Format::Csv if self.documents == 0 => format!("{}\n{}", csv::HEADER, csv::rows(report)),
            Format::Csv => csv::rows(report),
            Format::Json if self.stream => json::line(report)?,
            Format::Json => json::pretty(report)?,
        };
        let is_measured = report.blocks.iter().any(|b| b.measured.is_some() || b.entries.is_some());
        if self.format == Format::Csv && is_measured {
            note("CSV has no blocks; --format json has them");
        }
        self.documents += 1;
        self.write(&text)
    }

    /// Writes the report of the whole measurement; after intervals it is the summary.
    pub fn last(&mut self, report: &Report) -> Result<()> {
        let is_shown = !self.page_only;
        if is_shown && self.stream && self.documents > 0 && self.format == Format::Text {
            self.write("\nSummary of all intervals\n")?;
        }
        self.document(report)
    }

    /// Whether files that need the whole have documents of intervals only.
    pub fn wants_whole(&self) -> bool {
        self.collected.has_intervals_only()
    }

    /// Takes the document of all intervals for these files.
    pub fn whole(&mut self, report: &Report) {
        self.collected.add(report);
    }

    /// Writes the files that are of all documents.
    pub fn finish(&mut self) -> Result<()> {
        self.collected.write()
    }

    /// Notes where the report is, if it is in a file.
    pub fn note_file(&self) {
        self.collected.note_files();
        if let Some(path) = &self.name {
            note(&format!("the report is in {}", path.display()));
        }
    }

    /// Whether the report is text that is read where notes are.
    pub fn is_read_here(&self) -> bool {
        !self.page_only && self.format == Format::Text && matches!(self.to, To::Stream(..))
    }

    /// Where it goes, in words.
    fn place(&self) -> String {
        match (&self.name, &self.to) {
            (None, To::Stream(name, _)) => (*name).to_owned(),
            (name, _) => name.as_ref().map(|p| p.display().to_string()).unwrap_or_default(),
        }
    }

    fn write(&mut self, text: &str) -> Result<()> {
        let text = match self.style.color {
            true => tma::text::coloured(text),
            false => tma::text::lines(text),
        };
        let written = match &mut self.to {
            To::Stream(_, out) => out.write_all(text.as_bytes()).and_then(|()| out.flush()),
            To::File(file) => {
                let first = std::mem::take(&mut self.untouched);
                let cleared = if first { file.set_len(0).or_else(not_a_file) } else { Ok(()) };
                cleared.and_then(|()| file.write_all(text.as_bytes()))
            }
            To::Whole(path, all) => {
                all.push_str(&text);
                return write_whole(path, all.as_bytes(), &[], "--output");
            }
        };
        match written {
            // A reader that went away (`| head`) is no error, but it ends a stream of reports.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
                if self.stream {
                    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM);
                }
                Ok(())
            }
            Err(e) => Err(Error::failed(format!("cannot write the report to {}", self.place()))
                .because(e)
                .hint("choose another file with --output")),
            Ok(()) => Ok(()),
        }
    }
}

/// Pipes and devices have no length to set.
fn not_a_file(e: std::io::Error) -> std::io::Result<()> {
    if e.kind() == std::io::ErrorKind::InvalidInput { Ok(()) } else { Err(e) }
}

/// Kind of a file.
#[derive(Clone, Copy)]
enum Kind {
    Page,
    Firefox,
    Trace,
}

/// The files, and the documents so far; these are kept only if there is a file.
pub struct Collected {
    files: Vec<(Kind, PathBuf)>,
    reports: Vec<Report>,
}

impl Collected {
    /// Refuses files that cannot be written, before anything runs; they keep their content until they are written.
    pub fn open(args: &ReportArgs) -> Result<Self> {
        let all =
            [(Kind::Page, &args.html), (Kind::Firefox, &args.firefox), (Kind::Trace, &args.trace)];
        let wanted = all.into_iter().filter_map(|(kind, path)| Some((kind, path.clone()?)));
        let files: Vec<(Kind, PathBuf)> = wanted.collect();
        files.iter().try_for_each(|(kind, path)| kind.check(path))?;
        Ok(Self { files, reports: Vec::new() })
    }

    /// Takes the next document: of an interval, or the whole.
    pub fn add(&mut self, report: &Report) {
        if !self.files.is_empty() {
            self.reports.push(report.clone());
        }
    }

    /// Whether no document is of the whole.
    pub fn has_intervals_only(&self) -> bool {
        self.reports.len() > 1 && self.reports.iter().all(|report| report.interval.is_some())
    }

    /// Writes the files. The last document is of the whole measurement, unless all are of intervals.
    pub fn write(&mut self) -> Result<()> {
        let is_interval = |report: &Report| report.interval.is_some();
        let Some(mut whole) = self.reports.last().cloned() else { return Ok(()) };
        if !is_interval(&whole) {
            self.reports.pop();
        }
        phases::enter(&mut whole, &self.reports);
        for (kind, path) in &self.files {
            kind.refuse_empty(path, &whole, &self.reports)?;
            write_whole(path, &kind.content(&whole, &self.reports)?, &[], kind.option())?;
        }
        Ok(())
    }

    /// Notes where the files are.
    pub fn note_files(&self) {
        for (kind, path) in self.files.iter().filter(|(_, path)| !is_stdout(path)) {
            note(&format!("the {} is in {}", kind.name(), path.display()));
        }
    }
}

impl Kind {
    fn option(self) -> &'static str {
        match self {
            Kind::Page => "--html",
            Kind::Firefox => "--firefox",
            Kind::Trace => "--trace",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Page => "page",
            Kind::Firefox => "profile for the Firefox Profiler",
            Kind::Trace => "trace",
        }
    }

    fn content(self, whole: &Report, intervals: &[Report]) -> Result<Vec<u8>> {
        match self {
            Kind::Page => Ok(page(whole, intervals).into_bytes()),
            Kind::Firefox => over_time::firefox(whole, intervals),
            Kind::Trace => Ok(over_time::trace(whole, intervals)),
        }
    }

    /// Refuses to write a file in which nothing would be shown over time.
    fn refuse_empty(self, path: &Path, whole: &Report, intervals: &[Report]) -> Result<()> {
        let has_samples = whole.timeline.as_ref().is_some_and(|t| !t.taken.samples.is_empty());
        let is_enough = match self {
            Kind::Page => true,
            Kind::Firefox => has_samples || intervals.len() > 1,
            Kind::Trace => intervals.len() > 1,
        };
        if is_enough {
            return Ok(());
        }
        let what = format!("cannot write the {} to {}", self.name(), path.display());
        let error = Error::failed(what);
        Err(match self {
            Kind::Trace => error
                .because("there are fewer than two intervals")
                .hint("shorter ones: `tdtool report --interval 100 --trace FILE -- COMMAND`"),
            _ => error
                .because("there are no samples with times, and no intervals")
                .hint("give a recording with samples: `tdtool record -g -o FILE -- COMMAND`"),
        })
    }

    fn check(self, path: &Path) -> Result<()> {
        let is_stream = |of: FileType| of.is_fifo() || of.is_char_device();
        if is_stdout(path) || path.metadata().is_ok_and(|found| is_stream(found.file_type())) {
            // A pipe is opened when there is something to write.
            return Ok(());
        }
        let is_new = !path.exists();
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        opened.map_err(|e| {
            let what = format!("cannot write the {} to {}", self.name(), path.display());
            not_written(what, path, &e, self.option())
        })?;
        if is_new {
            // It was only to see whether it can be written.
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }
}
