//! Rows of CSV (RFC 4180).

/// One row, without a line break at its end; fields are quoted where they must be. Line breaks in
/// fields become blanks, so that a row is a line; other control characters are shown as escapes.
pub fn row<F: AsRef<str>>(fields: impl IntoIterator<Item = F>) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    let flat = |field: F| tma::text::name(&field.as_ref().replace(['\n', '\r'], " ")).into_owned();
    // Writing to memory does not fail.
    let _ = writer.write_record(fields.into_iter().map(flat));
    let mut line = writer.into_inner().unwrap_or_default();
    line.pop();
    String::from_utf8_lossy(&line).into_owned()
}

/// A number with every digit: whoever compares two rows must not compare roundings. Nothing where
/// there is none.
pub fn number(value: Option<f64>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}
