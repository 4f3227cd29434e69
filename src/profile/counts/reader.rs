//! Reads files into a recording: recognises the format of each by content, and parses it line by line, of bounded
//! length.

use super::builder::Builder;
use super::formats::{CountFormat, FileKind, formats};
use super::recording::{Recording, Source};
use super::{mistaken, perf_csv, perf_json, plain, sessions, toplev};
use crate::{kept, session};
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use tma::error::{Error, Result};
use tma::files::name;

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
        return Err(Error::usage("no file to import").hint(formats()));
    }
    let mut builder = Builder::default();
    for path in paths {
        let path = path.as_ref();
        read_file(path, FileKind::of(path)?, &mut builder)?;
    }
    Ok(builder.finish())
}

/// Reads the recorded counts of one file, whose kind is known.
///
/// # Errors
/// As [`read`].
pub fn read_as(path: &Path, kind: FileKind) -> Result<Recording> {
    let mut builder = Builder::default();
    read_file(path, kind, &mut builder)?;
    Ok(builder.finish())
}

fn read_file(path: &Path, kind: FileKind, builder: &mut Builder) -> Result<()> {
    match kind {
        FileKind::PerfStatRecord => return sessions::read_stat(path, builder),
        FileKind::PerfData => return Err(sessions::with_samples(path)),
        FileKind::Session | FileKind::Evidence | FileKind::Document | FileKind::Other => {}
    }
    if path == Path::new("-") && kept::kept(path).is_none() {
        return read_text(std::io::stdin().lock(), path, builder);
    }
    let file = kept::open(path).map_err(|e| tma::error::unreadable(path, &e))?;
    match kind {
        FileKind::Session => read_session(file, path, builder),
        _ => read_text(file, path, builder),
    }
}

/// Reads an open text; `path` names it in messages.
fn read_text(input: impl Read, path: &Path, builder: &mut Builder) -> Result<()> {
    let mut lines = Lines::new(input, path);
    mistaken::binary(lines.peek()?, path)?;
    builder.start_file(Source { path: path.to_owned(), format: CountFormat::PerfJson, runs: 1 });
    read_lines(&mut lines, path, builder)?;
    if let Some(line) = lines.first_bad_utf8() {
        let note = format!("{}:{line}: not UTF-8; invalid bytes were replaced", name(path));
        builder.recording().notes.push(note);
    }
    if !lines.terminated() {
        let note = format!(
            "{}:{}: the last line has no line end; it may be cut off",
            name(path),
            lines.line()
        );
        builder.recording().notes.push(note);
    }
    Ok(())
}

fn read_session(input: impl Read, path: &Path, builder: &mut Builder) -> Result<()> {
    let session = session::load_from(input, &name(path))?;
    builder.start_file(Source { path: path.to_owned(), format: CountFormat::Session, runs: 1 });
    let recording = builder.recording();
    recording.notes.extend(session.notes.iter().map(|n| format!("{}: {n}", name(path))));
    recording.sessions.push(session);
    Ok(())
}

/// A line by which a format was recognised, as it was read for that: it is not read again.
enum FirstLine<'a> {
    /// It has the names of the columns.
    Header,
    PerfCsv(Box<perf_csv::Line>),
    PerfJson(Vec<perf_json::Object>),
    Toplev(Vec<Cow<'a, str>>),
}

/// The parser of one format, with its state between lines.
enum Parser {
    PerfCsv(perf_csv::PerfCsv),
    PerfJson,
    Toplev(toplev::Columns),
    Plain(plain::Columns),
}

impl Parser {
    fn format(&self) -> CountFormat {
        match self {
            Parser::PerfCsv(p) => CountFormat::PerfCsv { separator: p.separator().to_owned() },
            Parser::PerfJson => CountFormat::PerfJson,
            Parser::Toplev(_) => CountFormat::Toplev,
            Parser::Plain(p) => CountFormat::Plain { separator: p.separator() },
        }
    }

    /// Adds the line `text`, by which the format was recognised.
    fn first(
        &mut self,
        number: u32,
        text: &str,
        first: &FirstLine<'_>,
        builder: &mut Builder,
    ) -> Result<()> {
        match (self, first) {
            (Parser::PerfCsv(p), FirstLine::PerfCsv(line)) => p.add(number, text, line, builder),
            (Parser::PerfJson, FirstLine::PerfJson(all)) => {
                perf_json::add_all(number, all, text, builder)
            }
            (Parser::Toplev(p), FirstLine::Toplev(fields)) => p.add(number, text, fields, builder),
            (_, FirstLine::Header) => Ok(()),
            // It was recognised for another format than it is read as.
            (parser, _) => parser.line(number, text, builder),
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

    /// Recognises a line that belongs to one format only.
    fn recognise(text: &str) -> Option<(Parser, FirstLine<'_>)> {
        if let Some(all) = perf_json::recognise(text) {
            return Some((Parser::PerfJson, FirstLine::PerfJson(all)));
        }
        if let Some(columns) = toplev::Columns::from_header(text) {
            return Some((Parser::Toplev(columns), FirstLine::Header));
        }
        if let Some((columns, fields)) = toplev::Columns::headerless(text) {
            return Some((Parser::Toplev(columns), FirstLine::Toplev(fields)));
        }
        if let Some(columns) = plain::Columns::from_header(text) {
            return Some((Parser::Plain(columns), FirstLine::Header));
        }
        let (parser, line) = perf_csv::PerfCsv::recognise(text)?;
        Some((Parser::PerfCsv(parser), FirstLine::PerfCsv(Box::new(line))))
    }
}

fn read_lines(lines: &mut Lines<impl Read>, path: &Path, builder: &mut Builder) -> Result<()> {
    let mut kept: Vec<(u32, String)> = Vec::new();
    let mut parser = None;
    let mut plain_lines = 0;
    while let Some((number, text)) = lines.next()? {
        if text.trim().is_empty() {
            continue;
        }
        if let Some((found, first)) = Parser::recognise(&text) {
            let mut found = parse_kept(found, &mut kept, builder)?;
            found.first(number, &text, &first, builder)?;
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
            path: name(path),
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
                .hint(formats()));
        }
        if self.buffer.contains(&0) {
            return Err(Error::failed(format!("{path}:{place}: this is a binary file"))
                .because("the line holds a NUL byte")
                .hint(formats()));
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
