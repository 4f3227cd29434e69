//! Sizes as text: `4096`, `64K`, `256MiB`, `1G`.

use tma::{Error, Result};

/// Parses a size: a whole number, optionally followed by K, M, G or T (powers of 1024; `KiB` and
/// `KB` mean the same).
///
/// # Errors
/// Usage: not such a number, or more than 64 bits hold.
///
/// ```
/// assert_eq!(workload::parse_size("64K")?, 65_536);
/// assert_eq!(workload::parse_size("1GiB")?, 1 << 30);
/// assert!(workload::parse_size("many").is_err());
/// # Ok::<(), tma::Error>(())
/// ```
pub fn parse_size(text: &str) -> Result<u64> {
    let wrong = || {
        Error::usage(format!("`{text}` is not a size"))
            .hint("write a whole number, with K, M, G or T for powers of 1024: 4096, 64K, 256M")
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// `bytes` in the largest binary unit with a value of at least 1: `256 MiB`, `1.5 GiB`.
pub(super) fn human(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let step = (bytes.max(1).ilog2() / 10) as usize;
    let value = bytes as f64 / (1u64 << (10 * step)) as f64;
    let rounded = (value * 10.0).round() / 10.0;
    format!("{rounded} {}", units[step])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma::ErrorKind;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in
            [("4096", 4096), ("64K", 65_536), ("256MiB", 268_435_456), ("1g", 1_073_741_824)]
        {
            assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn nonsense_is_wrong_usage() {
        for text in ["", "K", "-1", "1.5G", "10X", "20000000T", "99999999999999999999", "1 K"] {
            assert_eq!(parse_size(text).unwrap_err().kind(), ErrorKind::Usage, "{text}");
        }
    }

    #[test]
    fn bytes_read_well() {
        assert_eq!(human(268_435_456), "256 MiB");
        assert_eq!(human(1_610_612_736), "1.5 GiB");
        assert_eq!(human(0), "0 bytes");
        assert_eq!(human(u64::MAX), "16 EiB");
    }
}
