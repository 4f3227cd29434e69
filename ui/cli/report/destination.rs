//! Where the report goes and how it looks there.

use super::args::{Format, ReportArgs};
use crate::cli::Global;
use engine::documents::Report;
use engine::render::report::csv;
use engine::render::report::text::{Style, render};
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use tma::{Error, Result};

/// Columns of text where the output is no terminal.
const PLAIN_WIDTH: usize = 100;

/// An open destination.
pub struct Output {
    to: To,
    name: Option<PathBuf>,
    format: Format,
    style: Style,
    /// Several documents go out: JSON is then one a line.
    stream: bool,
    documents: usize,
    /// Nothing has been written to the file yet.
    untouched: bool,
}

/// A file keeps what it holds until there is a report to put in its place.
enum To {
    Stdout(std::io::Stdout),
    File(File),
}

impl Output {
    /// Opens the destination before anything runs: a full day's measurement must not end in
    /// "permission denied". What is in the file stays until the first document is written.
    pub fn open(args: &ReportArgs, global: &Global) -> Result<Self> {
        let stdout = std::io::stdout();
        let path = args.output.as_ref().filter(|p| p.as_os_str() != "-");
        let terminal = path.is_none() && stdout.is_terminal();
        let to = match path {
            None => To::Stdout(stdout),
            Some(path) => To::File(
                OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(
                    |e| {
                        Error::failed(format!("cannot write the report to {}", path.display()))
                            .because(e)
                    },
                )?,
            ),
        };
        let columns = crate::width::columns(&std::io::stdout()).filter(|_| terminal);
        let style = Style {
            color: terminal && may_color(),
            ascii: global.ascii,
            width: columns.unwrap_or(PLAIN_WIDTH).clamp(40, 120),
            verbose: args.verbose,
        };
        let stream = args.interval.is_some();
        let name = path.cloned();
        Ok(Self { to, name, format: args.format, style, stream, documents: 0, untouched: true })
    }

    /// Writes one document and flushes it.
    pub fn document(&mut self, report: &Report) -> Result<()> {
        let text = match self.format {
            Format::Text => {
                let gap = if self.documents > 0 { "\n" } else { "" };
                format!("{gap}{}", render(report, &self.style))
            }
            Format::Csv if self.documents == 0 => format!("{}\n{}", csv::HEADER, csv::rows(report)),
            Format::Csv => csv::rows(report),
            Format::Json if self.stream => {
                let text = serde_json::to_string(report);
                text.map_err(|e| Error::failed("cannot write JSON").because(e))? + "\n"
            }
            Format::Json => crate::commands::to_json(report)?,
        };
        self.documents += 1;
        self.write(&text)
    }

    /// The report of the whole measurement: after intervals the summary.
    pub fn last(&mut self, report: &Report) -> Result<()> {
        if self.stream && self.documents > 0 && self.format == Format::Text {
            self.write("\nSummary of all intervals\n")?;
        }
        self.document(report)
    }

    /// Says where the report is, if it is not on standard output.
    #[allow(clippy::print_stderr)]
    pub fn finish(&mut self) -> Result<()> {
        if let Some(path) = &self.name {
            eprintln!("note: the report is in {}", path.display());
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<()> {
        let written = match &mut self.to {
            To::Stdout(out) => out.write_all(text.as_bytes()).and_then(|()| out.flush()),
            To::File(file) => {
                let first = std::mem::take(&mut self.untouched);
                let cleared = if first { file.set_len(0).or_else(not_a_file) } else { Ok(()) };
                cleared.and_then(|()| file.write_all(text.as_bytes()))
            }
        };
        match written {
            // A reader that went away (| head) is no error, but it ends a stream of reports.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
                if self.stream {
                    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM);
                }
                Ok(())
            }
            Err(e) => {
                let to = self.name.as_ref().map(|p| p.display().to_string());
                let to = to.unwrap_or_else(|| "standard output".into());
                Err(Error::failed(format!("cannot write the report to {to}"))
                    .because(e)
                    .hint("free some space, or choose another place with --output"))
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Pipes and devices have no length to set.
fn not_a_file(e: std::io::Error) -> std::io::Result<()> {
    if e.kind() == std::io::ErrorKind::InvalidInput { Ok(()) } else { Err(e) }
}

/// <https://no-color.org>; a terminal that calls itself dumb knows no attributes.
fn may_color() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_some_and(|t| t != "dumb")
}
