//! The folder of a day and host. A host's name is a part of a path: what is not a letter, digit, `.`, `_` or `-` in it
//! becomes `%XX`, as Hive has it.

#![cfg_attr(not(feature = "parquet"), allow(dead_code))]

use crate::window::Window;
use std::fmt::Write as _;
use tma::{Error, Result};

/// The end of the year 9999, by which dates have four digits.
const LAST: u64 = 253_402_300_799_999;
/// Most bytes of a name in a path, less `host=`.
const LONGEST: usize = 240;

/// Day and host of a window: `date=2026-12-01/host=web1`.
///
/// # Errors
/// The host has no name, or one that no file can have; its clock was before 1970 or after 9999.
pub(super) fn of(window: &Window) -> Result<String> {
    let host = &window.host.name;
    let shown = tma::text::name(host);
    let escaped = escaped(host);
    if escaped.is_empty() {
        return Err(Error::failed("a window has no host name")
            .hint("set `host.name` of its document, or record it anew"));
    }
    if escaped.len() > LONGEST {
        let short: String = shown.chars().take(40).collect();
        return Err(Error::failed(format!("the host name {short}… is too long"))
            .because(format!("it has over {LONGEST} bytes in a path"))
            .hint("give the host a shorter name"));
    }
    let begin = u64::try_from(window.start_ms).ok().filter(|begin| *begin <= LAST);
    let begin = begin.ok_or_else(|| {
        Error::failed(format!("a window of {shown} has no date"))
            .because(format!("it begins {} ms after 1970", window.start_ms))
            .hint("set the host's clock")
    })?;
    let date = tma::text::date(begin / 1000);
    Ok(format!("date={}/host={escaped}", date.split('T').next().unwrap_or(&date)))
}

fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            true => out.push(char::from(byte)),
            false => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        for (name, part) in [
            ("web-1.example.org", "web-1.example.org"),
            ("../../etc", "..%2F..%2Fetc"),
            ("a b=c%20*?", "a%20b%3Dc%2520%2A%3F"),
            ("\u{e4}\0\n", "%C3%A4%00%0A"),
        ] {
            assert_eq!(escaped(name), part);
        }
    }
}
