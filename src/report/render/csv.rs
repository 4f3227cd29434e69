//! Rows of CSV (RFC 4180).

use tma::text::name;

/// A row that is written field by field at the end of a text; fields are quoted where they must be. Line
/// breaks in fields become blanks, so that a row is a line; other control characters are shown as escapes.
pub struct Row<'a> {
    out: &'a mut String,
    begin: usize,
    fields: usize,
}

impl<'a> Row<'a> {
    /// An empty row.
    pub fn new(out: &'a mut String) -> Self {
        let begin = out.len();
        Self { out, begin, fields: 0 }
    }

    /// Adds a field.
    pub fn text(&mut self, field: &str) -> &mut Self {
        self.next();
        // Without a branch for each byte: many are compared at once.
        let is_plain = |b: u8| matches!(b, b' '..=b'~') & (b != b'"') & (b != b',');
        match field.bytes().fold(true, |all, b| all & is_plain(b)) {
            true => self.out.push_str(field),
            false => self.unusual(field),
        }
        self
    }

    /// Adds a number with every digit: whoever compares two rows must not compare roundings. Nothing where
    /// there is none.
    pub fn number(&mut self, value: Option<f64>) -> &mut Self {
        self.next();
        if let Some(value) = value {
            self.out.push_str(exact(&mut zmij::Buffer::new(), value));
        }
        self
    }

    /// Adds 1 or 0; nothing where neither is known.
    pub fn flag(&mut self, value: Option<bool>) -> &mut Self {
        self.text(value.map_or("", |v| if v { "1" } else { "0" }))
    }

    /// Adds fields that were written before.
    pub fn raw(&mut self, fields: &str) -> &mut Self {
        self.next();
        self.out.push_str(fields);
        self
    }

    /// Ends the row, without a line break.
    pub fn end(&mut self) {
        if self.fields == 1 && self.out.len() == self.begin {
            // An empty line is no row.
            self.out.push_str("\"\"");
        }
    }

    fn next(&mut self) {
        if self.fields > 0 {
            self.out.push(',');
        }
        self.fields += 1;
    }

    fn unusual(&mut self, field: &str) {
        let flat = field.replace(['\n', '\r'], " ");
        let flat = name(&flat);
        match flat.contains(['"', ',']) {
            true => *self.out += &format!("\"{}\"", flat.replace('"', "\"\"")),
            false => *self.out += &flat,
        }
    }
}

/// One row, without a line break at its end.
pub fn row<F: AsRef<str>>(fields: impl IntoIterator<Item = F>) -> String {
    let mut out = String::new();
    let mut row = Row::new(&mut out);
    for field in fields {
        row.text(field.as_ref());
    }
    row.end();
    out
}

/// One row with its line break.
pub fn line<F: AsRef<str>>(fields: impl IntoIterator<Item = F>) -> String {
    row(fields) + "\n"
}

/// A value as it is shown; nothing where there is none.
pub fn text(value: Option<impl ToString>) -> String {
    value.map(|one| one.to_string()).unwrap_or_default()
}

/// As [`Row::number`].
pub fn number(value: Option<f64>) -> String {
    value.map(|v| exact(&mut zmij::Buffer::new(), v).to_owned()).unwrap_or_default()
}

/// The shortest digits that are read as this number again; very large and very small ones with an exponent.
fn exact(buffer: &mut zmij::Buffer, value: f64) -> &str {
    let text = buffer.format(value);
    text.strip_suffix(".0").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_read_again_with_every_digit(number in any::<f64>(), whole in any::<i32>()) {
            let read = |text: &str| text.parse::<f64>().expect("a number");
            let written = super::number(Some(number));
            prop_assert!(read(&written) == number || number.is_nan(), "{}", written);
            prop_assert_eq!(super::number(Some(f64::from(whole))), whole.to_string());
            prop_assert!(super::number(Some(number.trunc())).len() < 26, "no long rows of zeros");
        }

        #[test]
        fn a_reader_of_csv_reads_what_was_written(
            fields in prop::collection::vec("[a-z ,\"ä\u{202e}\n\r\t'#-]{0,6}", 1..5),
        ) {
            let line = row(&fields);
            prop_assert!(!line.contains(['\n', '\r']), "one line");
            let text = line + "\n";
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            let read = reader.records().next().expect("a row").expect("it is CSV");
            let shown = |f: &String| {
                f.replace(['\n', '\r'], " ").replace('\t', "\\u0009").replace('\u{202e}', "\\u202e")
            };
            let shown: Vec<String> = fields.iter().map(shown).collect();
            prop_assert_eq!(read.iter().collect::<Vec<_>>(), shown);
        }
    }
}
