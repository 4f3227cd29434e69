//! Files → a recording: recognises the format of each by content and parses it line by line.

use super::builder::Builder;
use super::format::{FORMATS, Format};
use super::lines::Lines;
use super::recording::{Recording, Source};
use super::{perf_csv, perf_json, plain, toplev};
use crate::session;
use std::io::Read;
use std::path::Path;
use tma::error::{Error, Result};

/// Suffixes of source files in compiled languages, and of scripts with their interpreters.
const SOURCES: [&str; 10] = ["c", "cc", "cpp", "cxx", "h", "hpp", "rs", "go", "f90", "s"];
const SCRIPTS: [(&str, &str); 4] =
    [("py", "python3"), ("sh", "sh"), ("pl", "perl"), ("rb", "ruby")];

/// Lines kept while the format is unknown: the output of the measured program often comes first.
const KEPT_LINES: usize = 200_000;
/// Characters kept of such a line; no line of counts is longer.
const KEPT_TEXT: usize = 4096;
/// Lines `name,number` after which an unknown format is taken for plain CSV.
const PLAIN_ENOUGH: usize = 1000;

/// Reads recorded counts from `paths`, each in any supported format; `-` is standard input.
///
/// # Errors
/// A file cannot be read, is binary, empty or of no known format, or has no count at all. Single
/// lines that cannot be parsed are listed in [`Recording::skipped`].
pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Recording> {
    if paths.is_empty() {
        return Err(Error::usage("no file to import").hint(FORMATS));
    }
    let mut builder = Builder::default();
    for path in paths {
        read_file(path.as_ref(), &mut builder)?;
    }
    Ok(builder.finish())
}

fn read_file(path: &Path, builder: &mut Builder) -> Result<()> {
    if path == Path::new("-") {
        return read_from(std::io::stdin().lock(), path, builder);
    }
    let unreadable =
        |e: std::io::Error| Error::failed(format!("cannot read {}", path.display())).because(e);
    if path.is_dir() {
        return Err(folder_error(path));
    }
    let file = tma::files::open(path).map_err(unreadable)?;
    read_from(file, path, builder)
}

/// The error for a folder in place of a recording.
pub fn folder_error(path: &Path) -> Error {
    Error::failed(format!("{} is a folder, not a recording", path.display())).hint(FORMATS)
}

/// Reads one open file; `path` names it in messages.
///
/// # Errors
/// As [`read`].
pub fn read_from(input: impl Read, path: &Path, builder: &mut Builder) -> Result<()> {
    let mut lines = Lines::new(input, path);
    if lines.peek()?.starts_with(&session::MAGIC) {
        return read_session(lines.into_input(), path, builder);
    }
    refuse_known_binaries(lines.peek()?, path)?;
    builder.start_file(Source { path: path.to_owned(), format: Format::PerfJson, runs: 1 });
    read_text(&mut lines, path, builder)?;
    if let Some(line) = lines.first_bad_utf8() {
        let note = format!("{}:{line}: not UTF-8; invalid bytes were replaced", path.display());
        builder.recording().notes.push(note);
    }
    if !lines.terminated() {
        let note = format!(
            "{}:{}: the last line has no line end; it may be cut off",
            path.display(),
            lines.line()
        );
        builder.recording().notes.push(note);
    }
    Ok(())
}

fn read_session(input: impl Read, path: &Path, builder: &mut Builder) -> Result<()> {
    let session = session::load_from(input, &path.display().to_string())?;
    builder.start_file(Source { path: path.to_owned(), format: Format::Session, runs: 1 });
    let recording = builder.recording();
    recording.notes.extend(session.notes.iter().map(|n| format!("{}: {n}", path.display())));
    recording.sessions.push(session);
    Ok(())
}

fn refuse_known_binaries(start: &[u8], path: &Path) -> Result<()> {
    // As a shell finds it.
    let folder = if path.parent().is_some_and(|p| p.as_os_str().is_empty()) { "./" } else { "" };
    let to_run = format!("to measure it: `tdtool report -- {folder}{}`", path.display());
    let known: [(&[u8], &str, &str); 5] = [
        (b"", "the file is empty", FORMATS),
        (
            b"PERFILE2",
            "this is perf.data, with samples, not counts",
            "record counts with `perf stat -x, -o FILE`; `perf stat report` cannot be imported either",
        ),
        (b"\x7fELF", "this is a program, not a recording", &to_run),
        (b"\x1f\x8b", "this is compressed (gzip)", "unpack it first: `gunzip FILE`"),
        (b"\x28\xb5\x2f\xfd", "this is compressed (zstd)", "unpack it first: `unzstd FILE`"),
    ];
    for (magic, what, hint) in known {
        let hit = if magic.is_empty() { start.is_empty() } else { start.starts_with(magic) };
        if hit {
            return Err(Error::failed(format!("{}: {what}", path.display())).hint(hint));
        }
    }
    Ok(())
}

/// The parser of one format, with its state between lines.
enum Parser {
    PerfCsv(perf_csv::PerfCsv),
    PerfJson,
    Toplev(toplev::Columns),
    Plain(plain::Columns),
}

impl Parser {
    fn format(&self) -> Format {
        match self {
            Parser::PerfCsv(p) => Format::PerfCsv { separator: p.separator().to_owned() },
            Parser::PerfJson => Format::PerfJson,
            Parser::Toplev(_) => Format::Toplev,
            Parser::Plain(p) => Format::Plain { separator: p.separator() },
        }
    }

    fn line(&mut self, number: u32, text: &str, builder: &mut Builder) -> Result<()> {
        match self {
            Parser::PerfCsv(p) => p.line(number, text, builder),
            Parser::PerfJson => perf_json::line(number, text, builder),
            Parser::Toplev(p) => p.line(number, text, builder),
            Parser::Plain(p) => p.line(number, text, builder),
        }
    }

    /// Recognises a line that belongs to one format only; `true` if it is a header.
    fn recognise(text: &str) -> Option<(Parser, bool)> {
        if perf_json::recognise(text) {
            return Some((Parser::PerfJson, false));
        }
        if let Some(columns) = toplev::Columns::from_header(text) {
            return Some((Parser::Toplev(columns), true));
        }
        if let Some(columns) = plain::Columns::from_header(text) {
            return Some((Parser::Plain(columns), true));
        }
        perf_csv::PerfCsv::recognise(text).map(|p| (Parser::PerfCsv(p), false))
    }
}

fn read_text(lines: &mut Lines<impl Read>, path: &Path, builder: &mut Builder) -> Result<()> {
    let mut kept: Vec<(u32, String)> = Vec::new();
    let mut parser = None;
    let mut plain_lines = 0;
    while let Some((number, text)) = lines.next()? {
        if text.trim().is_empty() {
            continue;
        }
        if let Some((found, is_header)) = Parser::recognise(&text) {
            let mut found = parse_kept(found, &mut kept, builder)?;
            if !is_header {
                found.line(number, &text, builder)?;
            }
            parser = Some(found);
            break;
        }
        refuse_known_texts(&text, path, number)?;
        plain_lines += usize::from(plain::Columns::headerless(&text).is_some());
        let start = text.char_indices().nth(KEPT_TEXT).map_or(&*text, |(end, _)| &text[..end]);
        kept.push((number, start.to_owned()));
        if plain_lines >= PLAIN_ENOUGH || kept.len() >= KEPT_LINES {
            break;
        }
    }
    let mut parser = match parser {
        Some(parser) => parser,
        None => {
            let columns = kept.iter().find_map(|(_, t)| plain::Columns::headerless(t));
            let columns = columns.ok_or_else(|| no_counts(path, kept.first()))?;
            parse_kept(Parser::Plain(columns), &mut kept, builder)?
        }
    };
    while let Some((number, text)) = lines.next()? {
        if !text.trim().is_empty() {
            parser.line(number, &text, builder)?;
        }
    }
    if !builder.file_has_rows() {
        let first = builder.recording().skipped.last();
        let first = first.map(|s| (s.line, s.text.clone()));
        return Err(no_counts(path, first.as_ref()));
    }
    Ok(())
}

/// Stores the format and parses the lines kept while it was unknown.
fn parse_kept(
    mut parser: Parser,
    kept: &mut Vec<(u32, String)>,
    builder: &mut Builder,
) -> Result<Parser> {
    if let Some(source) = builder.recording().sources.last_mut() {
        source.format = parser.format();
    }
    for (number, text) in kept.drain(..) {
        parser.line(number, &text, builder)?;
    }
    Ok(parser)
}

/// Refuses outputs that are imported by mistake, each with the command that was meant.
fn refuse_known_texts(text: &str, path: &Path, number: u32) -> Result<()> {
    let place = format!("{}:{number}", path.display());
    if text.contains("Performance counter stats for") {
        return Err(Error::failed(format!("{place}: this is perf's human-readable output"))
            .because("its numbers are rounded and do not show the groups")
            .hint("record again with `perf stat -x, -o FILE …` or `perf stat -j -o FILE …`"));
    }
    if toplev::is_results_header(text) {
        return Err(Error::failed(format!("{place}: these are toplev's results, not its counts"))
            .hint("record again with `toplev.py --valcsv FILE …`"));
    }
    Ok(())
}

fn no_counts(path: &Path, line: Option<&(u32, String)>) -> Error {
    let error = Error::failed(format!("{}: no recorded counts found", path.display()));
    let name = path.display();
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
    if SOURCES.contains(&ending.as_str()) {
        return error
            .because("it is source text, not a recording")
            .hint("compile it, then measure the program: `tdtool report -- ./PROGRAM`");
    }
    if let Some((_, runner)) = SCRIPTS.iter().find(|(end, _)| *end == ending) {
        return error
            .because("it is a script, not a recording")
            .hint(format!("to measure it: `tdtool report -- {runner} {name}`"));
    }
    let error = match line {
        Some((number, text)) => {
            let text: String = text.chars().take(80).filter(|c| !c.is_control()).collect();
            error.because(format!("line {number} is `{text}`"))
        }
        None => error.because("the file has blank lines only"),
    };
    error.hint(FORMATS)
}
