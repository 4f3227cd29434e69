//! Reads files into a recording: recognises the format of each by content, and parses it line by line, of bounded
//! length.

use super::builder::Builder;
use super::recording::{FORMATS, Format, Recording, Source};
use super::{mistaken, perf_csv, perf_json, plain, sessions, toplev};
use crate::{kept, perfdata, session};
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read, Seek as _};
use std::path::Path;
use tma::error::{Error, Result};

/// Lines buffered while the format is unknown: the output of the measured program often comes first.
const KEPT_LINES: usize = 200_000;
/// Characters buffered of such a line; no line of counts is longer.
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
    if path == Path::new("-") && kept::kept(path).is_none() {
        return read_from(std::io::stdin().lock(), path, builder);
    }
    let unreadable =
        |e: std::io::Error| Error::failed(format!("cannot read {}", path.display())).because(e);
    if path.is_dir() {
        return Err(folder_error(path));
    }
    let mut file = kept::open(path).map_err(unreadable)?;
    let mut start = Vec::new();
    (&file).take(8).read_to_end(&mut start).map_err(unreadable)?;
    if perfdata::recognise(&start) {
        return sessions::read_stat(path, builder);
    }
    file.rewind().map_err(unreadable)?;
    read_from(file, path, builder)
}

/// The error for a folder in place of a recording.
pub fn folder_error(path: &Path) -> Error {
    Error::failed(format!("{} is a folder, not a recording", path.display())).hint(FORMATS)
}

/// Reads one open file; `path` names it in messages.
fn read_from(input: impl Read, path: &Path, builder: &mut Builder) -> Result<()> {
    let mut lines = Lines::new(input, path);
    if lines.peek()?.starts_with(&session::MAGIC) {
        return read_session(lines.into_input(), path, builder);
    }
    mistaken::binary(lines.peek()?, path)?;
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
        if let Some(columns) = toplev::Columns::headerless(text) {
            return Some((Parser::Toplev(columns), false));
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
        mistaken::text(&text, path, number)?;
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
            match columns {
                Some(columns) => parse_kept(Parser::Plain(columns), &mut kept, builder)?,
                None if perf_json::lies_over_lines(&kept, builder)? => Parser::PerfJson,
                None => return Err(mistaken::no_counts(path, &kept)),
            }
        }
    };
    while let Some((number, text)) = lines.next()? {
        if !text.trim().is_empty() {
            parser.line(number, &text, builder)?;
        }
    }
    if !builder.file_has_rows() {
        let skipped = builder.recording().skipped.iter().map(|s| (s.line, s.text.clone()));
        return Err(mistaken::no_counts(path, &skipped.collect::<Vec<_>>()));
    }
    Ok(())
}

/// Stores the format and parses the buffered lines.
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

/// Longest line in bytes. perf's lines have some hundred, toplev's some thousand.
const LONGEST: usize = 1 << 20;

/// The mark at the start of a text that programs of Windows write.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads numbered lines.
pub struct Lines<R> {
    input: BufReader<R>,
    path: String,
    buffer: Vec<u8>,
    line: u32,
    terminated: bool,
    utf8: Option<u32>,
}

impl<R: Read> Lines<R> {
    /// Lines of `input`; `path` names it in messages.
    pub fn new(input: R, path: &Path) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 16, input),
            path: path.display().to_string(),
            buffer: Vec::new(),
            line: 0,
            terminated: true,
            utf8: None,
        }
    }

    /// The first bytes, without consuming them: at most one buffer full.
    pub fn peek(&mut self) -> Result<&[u8]> {
        let path = &self.path;
        self.input.fill_buf().map_err(|e| Error::failed(format!("cannot read {path}")).because(e))
    }

    /// The next line without its end, and its number from 1; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read, is binary, or has a line of more than [`LONGEST`] bytes.
    pub fn next(&mut self) -> Result<Option<(u32, Cow<'_, str>)>> {
        self.buffer.clear();
        let path = &self.path;
        let place = self.line.saturating_add(1);
        let mut limited = (&mut self.input).take(LONGEST as u64 + 1);
        let n = limited.read_until(b'\n', &mut self.buffer).map_err(|e| {
            Error::failed(format!("cannot read {path} beyond line {}", self.line)).because(e)
        })?;
        if n == 0 {
            return Ok(None);
        }
        self.line = place;
        self.terminated = self.buffer.last() == Some(&b'\n');
        if !self.terminated && n > LONGEST {
            return Err(Error::failed(format!("{path}:{place}: the line is longer than 1 MiB"))
                .because("no format of recorded counts has such lines")
                .hint(FORMATS));
        }
        if self.buffer.contains(&0) {
            return Err(Error::failed(format!("{path}:{place}: this is a binary file"))
                .because("the line holds a NUL byte")
                .hint(FORMATS));
        }
        while matches!(self.buffer.last(), Some(b'\n' | b'\r')) {
            self.buffer.pop();
        }
        let mark = if place == 1 { BYTE_ORDER_MARK } else { b"" };
        let line = self.buffer.strip_prefix(mark).unwrap_or(&self.buffer);
        let text = String::from_utf8_lossy(line);
        if matches!(text, Cow::Owned(_)) && self.utf8.is_none() {
            self.utf8 = Some(place);
        }
        Ok(Some((place, text)))
    }

    /// The input; if no line was read, from its first byte.
    pub fn into_input(self) -> impl Read {
        self.input
    }

    /// Number of the last line read.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Whether the last line read had its line end.
    pub fn terminated(&self) -> bool {
        self.terminated
    }

    /// The first line that was not UTF-8; its invalid bytes were replaced.
    pub fn first_bad_utf8(&self) -> Option<u32> {
        self.utf8
    }
}
