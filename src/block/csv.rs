//! One row a block, RFC 4180 quoting where a field needs it.

use super::document::Report;

/// The columns.
pub const HEADER: &str = "hex,status,reason,cycles,low,high,unrolled,loop,pages";

/// The row of one block, without a line break.
pub fn row(report: &Report) -> String {
    // Every digit: whoever computes a spread from two rows must not compute it from roundings.
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let throughput = report.throughput.as_ref();
    let forms = report.forms.as_ref();
    let fields = [
        field(&report.block.hex),
        report.status.word().to_owned(),
        field(report.reason.as_deref().unwrap_or_default()),
        number(throughput.map(|t| t.cycles)),
        number(throughput.map(|t| t.low)),
        number(throughput.map(|t| t.high)),
        number(forms.and_then(|f| f.unrolled.cycles)),
        number(forms.and_then(|f| f.looped.trusted())),
        report.pages.len().to_string(),
    ];
    fields.join(",")
}

/// A field, quoted if it must be; line breaks become blanks so that a row is a line.
pub fn field(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::document::Throughput;

    #[test]
    fn a_row_gives_back_every_digit() {
        let cycles = 1.0 / 3.0;
        let throughput =
            Throughput { cycles, low: 0.1 + 0.2, high: 0.5, modes: Vec::new(), clock: "tsc" };
        let report = Report {
            throughput: Some(throughput),
            ..crate::block::rejected("90", "a, \"b\"".into())
        };
        let row = row(&report);
        assert!(row.starts_with("90,rejected,\"a, \"\"b\"\"\","), "{row}");
        let numbers: Vec<f64> = row.split(',').filter_map(|f| f.parse().ok()).collect();
        assert_eq!(numbers[1..4], [cycles, 0.1 + 0.2, 0.5], "{row}");
    }
}
