//! Input of a batch: rows of CSV (RFC 4180) with the block in the first column.

use isa::code::{Block, parse_hex};
use tma::{Error, Result};

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its first column, without quotes.
    pub text: String,
    /// Why it cannot be read.
    pub fault: Option<&'static str>,
}

/// The rows of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// The first column's name, if the file has a header.
    pub header: Option<String>,
    /// The rows, without the header and empty lines.
    pub rows: Vec<Row>,
}

impl Row {
    /// The block.
    ///
    /// # Errors
    /// The row is malformed, or its bytes are not code.
    pub fn block(&self) -> Result<Block> {
        match self.fault {
            Some(fault) => Err(Error::failed("malformed row").because(fault)),
            None => parse_hex(&self.text).and_then(|bytes| Block::decode(&bytes)),
        }
    }

    /// The first column of the row in the output.
    pub fn written(&self) -> String {
        let text = match self.block() {
            Ok(block) => block.hex(),
            Err(_) => self.text.clone(),
        };
        tma::text::name(&text.replace(['\n', '\r'], " ")).into_owned()
    }
}

/// Reads the rows of a file, CSV or one hexadecimal block per line. A first row with a word that is not
/// hexadecimal is a header. Bytes that are not UTF-8 affect only their row.
///
/// # Errors
/// The file is UTF-16.
pub fn read(data: &[u8]) -> Result<Rows> {
    if data.starts_with(&[0xff, 0xfe]) || data.starts_with(&[0xfe, 0xff]) {
        return Err(Error::failed("cannot read the rows")
            .because("the file is UTF-16")
            .hint("save it as UTF-8"));
    }
    let mut rest = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    let mut all = Rows::default();
    // A malformed row ends with its line: the reader starts anew after it.
    while !rest.is_empty() {
        rest = &rest[read_up_to_a_fault(rest, &mut all.rows)?..];
    }
    if all.rows.first().is_some_and(|r| r.fault.is_none() && is_header(&r.text)) {
        all.header = Some(all.rows.remove(0).text);
    }
    Ok(all)
}

/// A name: at least three letters, not all of them hexadecimal digits, and no figures, which a
/// malformed block is likely to have.
fn is_header(field: &str) -> bool {
    field.len() >= 3
        && field.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && field.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '_' | ' ' | '-'))
        && field.chars().any(|c| c.is_ascii_alphabetic() && !c.is_ascii_hexdigit())
}

/// Reads rows until one is malformed; how many bytes were read.
fn read_up_to_a_fault(data: &[u8], rows: &mut Vec<Row>) -> Result<usize> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(csv::Terminator::Any(b'\n'))
        .from_reader(data);
    let mut record = csv::ByteRecord::new();
    let mut start = 0;
    while reader.read_byte_record(&mut record).map_err(unreadable)? {
        let end = reader.position().byte() as usize;
        // The reader passes over line breaks before a record.
        start += data[start..end].iter().take_while(|b| matches!(b, b'\n' | b'\r')).count();
        let (raw, field) = (&data[start..end], record.get(0).unwrap_or_default());
        if let Some((fault, first_column)) = fault(raw) {
            let line = line_at(raw);
            let text = text(if first_column { &raw[..line] } else { field });
            rows.push(Row { text, fault: first_column.then_some(fault) });
            return Ok(start + line);
        }
        if !raw.iter().all(u8::is_ascii_whitespace) {
            rows.push(Row { text: text(field), fault: None });
        }
        start = end;
    }
    Ok(data.len())
}

fn unreadable(e: csv::Error) -> Error {
    Error::failed("cannot read the rows").because(e)
}

/// The fault in a record's quotes, and whether it is in the first column. The reader accepts such records: it
/// appends text after a closing quote, and an unclosed quote swallows the following lines.
fn fault(raw: &[u8]) -> Option<(&'static str, bool)> {
    let mut at = 0;
    while let Some(first) = raw.get(at) {
        let is_first = at == 0;
        if *first == b'"' {
            let Some(after) = after_quoted(raw, at) else {
                return Some(("a quote is not closed", is_first));
            };
            if !matches!(raw[after..], [] | [b',' | b'\n', ..] | [b'\r'] | [b'\r', b'\n', ..]) {
                return Some(("text after a closing quote", is_first));
            }
            at = after + 1;
        } else {
            at += raw[at..].iter().take_while(|b| **b != b',').count() + 1;
        }
    }
    None
}

/// The byte after the quoted field that starts at `at`: a doubled quote does not close it.
fn after_quoted(raw: &[u8], at: usize) -> Option<usize> {
    let mut next = at + 1;
    loop {
        next += raw.get(next..)?.iter().position(|b| *b == b'"')? + 1;
        if raw.get(next) != Some(&b'"') {
            return Some(next);
        }
        next += 1;
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn line_at(data: &[u8]) -> usize {
    data.iter().position(|b| *b == b'\n').map_or(data.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(data: &[u8]) -> Vec<String> {
        read(data).unwrap().rows.into_iter().map(|r| r.text).collect()
    }

    #[test]
    fn the_first_column_counts_and_a_header_is_no_row() {
        assert_eq!(texts(b"hex,sources\n4801d8,gcc\n\n\"48 01 d8\",x\n"), ["4801d8", "48 01 d8"]);
        assert_eq!(texts(b"4801d8\n\\x90\n"), ["4801d8", "\\x90"]);
        assert_eq!(read(b"code_hex\n90").unwrap().header.as_deref(), Some("code_hex"));
        assert_eq!(texts(b"zz\n90"), ["zz", "90"], "a malformed first row is a row");
        assert_eq!(texts(b"zz01\n90"), ["zz01", "90"]);
        assert_eq!(texts(b"cafe\nfacade"), ["cafe", "facade"]);
    }

    #[test]
    fn quotes_line_breaks_and_marks_are_as_rfc_4180_and_spreadsheets_have_them() {
        let data = b"\xef\xbb\xbfhex,note\r\n\"0x48,0x01,0xd8\",\"two\r\nlines, \"\"quoted\"\"\"\r\n90,\r\n,x\r\n";
        assert_eq!(texts(data), ["0x48,0x01,0xd8", "90", ""]);
        assert_eq!(texts(b"\"48\"\"01\"\n90"), ["48\"01", "90"]);
        assert_eq!(texts(b"90"), ["90"], "no line break at the end");
        assert_eq!(texts(b"90\r91\n92"), ["90\r91", "92"], "a lone carriage return ends no row");
    }

    #[test]
    fn what_is_broken_spoils_its_own_row_only() {
        let rows = read(b"\"4801d8\n90\n\"48\"01,x\nf4\xff,\n91,\"open\n92").unwrap().rows;
        let faults: Vec<_> = rows.iter().map(|r| r.block().is_err()).collect();
        assert_eq!(faults, [true, false, true, true, false, false], "{rows:?}");
        assert_eq!(rows[0].text, "\"4801d8");
        assert_eq!(texts(b"91,\"a\n92,\"b\n93"), ["91", "92", "93"]);
        assert!(read(b"\xff\xfe9\x000\x00").is_err());
    }
}
