//! A batch's input: rows of CSV (RFC 4180), of which the first column counts.

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
    /// The row is malformed, or its bytes are no code.
    pub fn block(&self) -> Result<Block> {
        match self.fault {
            Some(fault) => Err(Error::failed("malformed row").because(fault)),
            None => parse_hex(&self.text).and_then(|bytes| Block::decode(&bytes)),
        }
    }

    /// What the row's first column will be in the output.
    pub fn written(&self) -> String {
        let text = match self.block() {
            Ok(block) => block.hex(),
            Err(_) => self.text.clone(),
        };
        text.replace(['\n', '\r'], " ")
    }
}

/// Reads the rows of a file, one hexadecimal block a line or CSV. A first row with a word that
/// cannot be meant as hexadecimal is a header. Bytes that are not UTF-8 spoil their row only.
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
    while !rest.is_empty() {
        let (row, length) = record(rest);
        let line = &rest[..length];
        rest = &rest[length..];
        if !line.iter().all(u8::is_ascii_whitespace) {
            all.rows.push(row);
        }
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

/// The record at the start of `data`, and its length with its line break.
fn record(data: &[u8]) -> (Row, usize) {
    let row =
        |bytes: &[u8], fault| Row { text: String::from_utf8_lossy(bytes).trim().to_owned(), fault };
    let line = data.iter().position(|b| *b == b'\n').map_or(data.len(), |at| at + 1);
    let Some(b'"') = data.first() else {
        let end = data[..line].iter().position(|b| matches!(b, b',' | b'\n'));
        let end = end.unwrap_or(line);
        return (row(&data[..end], None), end + end_of_record(&data[end..]).unwrap_or(line - end));
    };
    let separated = |at: usize| matches!(data.get(at), None | Some(b',' | b'\n' | b'\r'));
    match quoted(data) {
        Some((field, length)) if separated(length) => {
            let behind = end_of_record(&data[length..]).unwrap_or_else(|| line_at(&data[length..]));
            (row(&field, None), length + behind)
        }
        // Only this line is spoilt, not all up to the next quote.
        Some((_, length)) if length <= line => {
            (row(&data[..line], Some("text behind a closing quote")), line)
        }
        _ => (row(&data[..line], Some("a quote is not closed")), line),
    }
}

/// The content of the quoted field at the start of `data`, and its length with its quotes.
fn quoted(data: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut field = Vec::new();
    let mut at = 1;
    loop {
        match (data.get(at)?, data.get(at + 1)) {
            (b'"', Some(b'"')) => {
                field.push(b'"');
                at += 2;
            }
            (b'"', _) => return Some((field, at + 1)),
            (byte, _) => {
                field.push(*byte);
                at += 1;
            }
        }
    }
}

fn line_at(data: &[u8]) -> usize {
    data.iter().position(|b| *b == b'\n').map_or(data.len(), |at| at + 1)
}

/// How far the record goes on behind its first column; `None` if a quote is not closed.
fn end_of_record(data: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = data.get(at) {
        match byte {
            b'\n' => return Some(at + 1),
            b',' if data.get(at + 1) == Some(&b'"') => at += 1 + quoted(&data[at + 1..])?.1,
            _ => at += 1,
        }
    }
    Some(at)
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
    }

    #[test]
    fn what_is_broken_spoils_its_own_row_only() {
        let rows = read(b"\"4801d8\n90\n\"48\"01,x\nf4\xff,\n91,\"open\n92").unwrap().rows;
        let faults: Vec<_> = rows.iter().map(|r| r.block().is_err()).collect();
        assert_eq!(faults, [true, false, true, true, false, false], "{rows:?}");
        assert_eq!(rows[0].text, "\"4801d8");
        assert!(read(b"\xff\xfe9\x000\x00").is_err());
    }
}
