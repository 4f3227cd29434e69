//! Formats numbers and places in one way for every renderer and every finding.
//!
//! ```
//! use report::format;
//!
//! assert_eq!(format::share(Some(0.234), Some(0.012)), "23.4 % ±1.2");
//! assert_eq!(format::share(None, None), "not measured");
//! assert_eq!(format::count(61_729_721_447.0), "61,729,721,447");
//! assert_eq!(format::ascii("±1.2 µs"), "+-1.2 us");
//! ```

/// Words as a shell takes them.
pub use tma::shell::quoted as command;

use tma::Address;

/// A share with its error: `23.4 % ±1.2`, `23.4 %`, or `not measured`.
pub fn share(value: Option<f64>, error: Option<f64>) -> String {
    value.map_or("not measured".into(), |value| share_cell(value, error).trim().to_owned())
}

/// As [`share`], as wide as those of other rows.
pub fn share_cell(value: f64, error: Option<f64>) -> String {
    let value = 100.0 * value;
    match error {
        Some(error) => format!("{value:>5.1} % ±{:<4.1}", 100.0 * error),
        None => format!("{value:>5.1} %      "),
    }
}

/// An interval of shares in whole per cent, rounded outwards so that the value lies in it: `("31", "47")`.
pub fn percent_bounds(low: f64, high: f64) -> (String, String) {
    // Shares that differ from a whole number by rounding alone are it.
    const ROUNDING: f64 = 1e-6;
    let low = (100.0 * low + ROUNDING).floor().max(0.0);
    // Not -0.
    let high = (100.0 * high - ROUNDING).ceil().max(low) + 0.0;
    (format!("{low:.0}"), format!("{high:.0}"))
}

/// A bound of a difference of shares in points, rounded up to a tenth: `5.0`.
pub fn at_most_points(bound: f64) -> String {
    let tenths = (1000.0 * bound - 1e-6).ceil().max(1.0);
    format!("{:.1}", tenths / 10.0)
}

/// Addresses with spaces between them.
pub fn joined<'a>(addresses: impl IntoIterator<Item = &'a Address>) -> String {
    addresses.into_iter().map(Address::to_string).collect::<Vec<_>>().join(" ")
}

/// A plain number with three significant digits, thousands grouped by their SI prefix.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    let (scaled, prefix) = match magnitude {
        m if m >= 1e12 => (value / 1e12, " T"),
        m if m >= 1e9 => (value / 1e9, " G"),
        m if m >= 1e6 => (value / 1e6, " M"),
        m if m >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        s if s >= 100.0 || s == 0.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        s if s >= 0.1 => 3,
        _ => 4,
    };
    format!("{scaled:.digits$}{prefix}")
}

/// A whole count with its digits grouped: `61_729_721_447` becomes `61,729,721,447`.
pub fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Cycles: `64.00`, and from 1,000 on whole ones: `9,799`.
pub fn cycles(value: f64) -> String {
    if value < 999.995 { format!("{value:.2}") } else { count(value) }
}

/// The text with every character outside ASCII replaced by what ASCII has for it.
pub fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '±' => out.push_str("+-"),
            'µ' => out.push('u'),
            '≥' => out.push_str(">="),
            '≤' => out.push_str("<="),
            '…' => out.push_str("..."),
            '·' => out.push('|'),
            '→' => out.push_str("->"),
            '×' => out.push('x'),
            '√' => out.push_str("sqrt "),
            '–' | '—' | '−' => out.push('-'),
            c if c.is_ascii() => out.push(c),
            _ => out.push('?'),
        }
    }
    out
}

/// The words of a line; a command that backticks enclose is one, so that it can be copied.
pub fn words(line: &str) -> Vec<&str> {
    let mut is_command = false;
    let is_end = |c: char| {
        is_command ^= c == '`';
        c == ' ' && !is_command
    };
    line.split(is_end).collect()
}

/// `file.c:7`: a source line without the folders of its file.
pub fn source(file: Option<&String>, line: Option<u32>) -> Option<String> {
    let name = file?.rsplit('/').next()?;
    Some(line.map_or(name.to_owned(), |line| format!("{name}:{line}")))
}

pub use tma::text::several;

/// Seconds with a fitting unit.
pub fn seconds(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0} s"),
        v if v >= 1.0 => format!("{v:.2} s"),
        v if v >= 1e-3 => format!("{:.2} ms", v * 1e3),
        v => format!("{:.1} µs", v * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_word() {
        assert_eq!(words("see `tdtool report -- x`, or"), ["see", "`tdtool report -- x`,", "or"]);
        assert_eq!(words("an odd ` backtick"), ["an", "odd", "` backtick"]);
    }

    #[test]
    fn a_bound_is_never_rounded_down() {
        // Percent with one digit, by hand; shares that are equal are so to the digit that is shown.
        for (bound, text) in
            [(0.05, "5.0"), (0.07, "7.0"), (0.0014, "0.2"), (0.0002, "0.1"), (0.0, "0.1")]
        {
            assert_eq!(at_most_points(bound), text, "{bound}");
        }
    }

    #[test]
    fn an_interval_contains_its_value_as_it_is_shown() {
        let of = |low, high| percent_bounds(low, high);
        assert_eq!(of(0.0, 0.004), ("0".to_owned(), "1".to_owned()), "0.4 % lies in it");
        assert_eq!(of(0.316, 0.464), ("31".to_owned(), "47".to_owned()));
        assert_eq!(of(0.7, 1.0), ("70".to_owned(), "100".to_owned()));
        assert_eq!(of(0.0, 0.0), ("0".to_owned(), "0".to_owned()));
    }

    #[test]
    fn numbers_read_as_a_person_writes_them() {
        assert_eq!(share(Some(0.2341), Some(0.012)), "23.4 % ±1.2");
        assert_eq!(share(None, None), "not measured");
        assert_eq!(count(61_729_721_447.0), "61,729,721,447");
        assert_eq!(count(999.0), "999");
        assert_eq!([64.0, 999.999, 9799.13].map(cycles), ["64.00", "1,000", "9,799"]);
        assert_eq!(number(0.0), "0");
        assert_eq!(number(1.234), "1.23");
        assert_eq!(number(2_812_000_000.0), "2.81 G");
    }
}
