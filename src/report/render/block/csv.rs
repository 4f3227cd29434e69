//! Measured blocks as CSV, one row each.

use crate::render::csv::{self, number};
use bench::Measurement;
use bench::batch::rows::{Row, read};
use tma::{Error, Result};

/// The columns.
pub const HEADER: &str = "hex,status,reason,cycles,low,high,unrolled,loop,pages";

/// The row of one block, without a line break.
pub fn row(report: &Measurement) -> String {
    let throughput = report.throughput.as_ref();
    let forms = report.forms.as_ref();
    csv::row([
        &report.block.hex,
        report.status.word(),
        report.reason.as_deref().unwrap_or_default(),
        &number(throughput.map(|t| t.cycles)),
        &number(throughput.map(|t| t.low)),
        &number(throughput.map(|t| t.high)),
        &number(forms.and_then(|f| f.unrolled.cycles)),
        &number(forms.and_then(|f| f.looped.trusted())),
        &report.pages.len().to_string(),
    ])
}

/// How much of an earlier run's output can stay: its rows, and its bytes up to the end of the
/// last whole one.
///
/// # Errors
/// It is no such output, or of another input: each of its rows must show the block of the input's.
pub fn finished(output: &[u8], rows: &[Row]) -> Result<(usize, u64)> {
    let end = output.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let other = |cause: String| {
        Error::failed("cannot resume")
            .because(cause)
            .hint("give the output of this input, or leave out --resume to start anew")
    };
    let whole = &output[..end];
    if whole.is_empty() && HEADER.as_bytes().starts_with(output) {
        return Ok((0, 0));
    }
    if !whole.starts_with(HEADER.as_bytes()) || whole.get(HEADER.len()) != Some(&b'\n') {
        return Err(other("the output file was not written by this command".to_owned()));
    }
    let done = read(whole)?.rows;
    if done.len() > rows.len() {
        let cause = format!("it has {} rows, the input only {}", done.len(), rows.len());
        return Err(other(cause));
    }
    for (number, (there, here)) in done.iter().zip(rows).enumerate() {
        let here = here.written();
        if there.text != here.trim() {
            let cause =
                format!("row {} of it is `{}`, of the input `{here}`", number + 1, there.text);
            return Err(other(cause));
        }
    }
    Ok((done.len(), end as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::Throughput;

    #[test]
    fn a_row_gives_back_every_digit() {
        let cycles = 1.0 / 3.0;
        let throughput =
            Throughput { cycles, low: 0.1 + 0.2, high: 0.5, modes: Vec::new(), clock: "tsc" };
        let report = Measurement {
            throughput: Some(throughput),
            ..bench::rejected("90", "a, \"b\"".into(), &tma::Core::default())
        };
        let row = row(&report);
        assert!(row.starts_with("90,rejected,\"a, \"\"b\"\"\","), "{row}");
        let numbers: Vec<f64> = row.split(',').filter_map(|f| f.parse().ok()).collect();
        assert_eq!(numbers[1..4], [cycles, 0.1 + 0.2, 0.5], "{row}");
    }

    fn rows(text: &str) -> Vec<Row> {
        read(text.as_bytes()).unwrap().rows
    }

    #[test]
    fn a_torn_line_is_cut_off_and_what_is_whole_stays() {
        let input = rows("48 01 d8\nzz,1\n\"48,01\nd8\"\n90\n");
        let out =
            format!("{HEADER}\n4801d8,ok,,1,1,1,1,1,0\nzz,rejected,\"a, b\",,,,,,0\n4801d8,ok,,1");
        let (count, bytes) = finished(out.as_bytes(), &input).unwrap();
        assert_eq!((count, &out[bytes as usize..]), (2, "4801d8,ok,,1"));
        for torn in ["", "hex,stat", HEADER] {
            assert_eq!(finished(torn.as_bytes(), &input).unwrap(), (0, 0), "{torn}");
        }
    }

    #[test]
    fn the_output_of_another_input_is_not_gone_on_with() {
        let input = rows("4801d8\n90\n");
        for (out, word) in [
            (format!("{HEADER}\n4801d8,ok,,1,1,1,1,1,0\n91,ok,,1,1,1,1,1,0\n"), "row 2"),
            (format!("{HEADER}\n4801d8,\n90,\n90,\n"), "3 rows"),
            ("something else\n".to_owned(), "not written"),
        ] {
            let error = finished(out.as_bytes(), &input).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
