//! Names of files: `NUMBER-UTC-BOOT.json.gz`. The number has twelve digits, so that names sort as windows do.

/// The end of a window's name.
const END: &str = ".json.gz";
/// The beginning of the name of a file that is being written; such files are hidden, and removed at the next start.
const NEW: &str = ".new-";
/// Digits of a number.
const DIGITS: usize = 12;
/// More are no number of ours.
const MOST_DIGITS: usize = 18;

/// The name of a window: its number, when it began in milliseconds since 1970, and the host's boot.
pub(super) fn of(number: u64, start_ms: i64, boot: Option<&str>) -> String {
    let is_plain = |c: &char| c.is_ascii_hexdigit();
    let boot: String = boot.unwrap_or_default().chars().filter(is_plain).take(8).collect();
    let boot = if boot.is_empty() { "unknown" } else { &boot };
    format!("{number:0DIGITS$}-{}-{boot}{END}", utc(start_ms))
}

/// The number of a window by its file's name; `None` of other files.
pub(super) fn number(name: &str) -> Option<u64> {
    let (digits, rest) = name.split_once('-')?;
    let is_ours = (DIGITS..=MOST_DIGITS).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| is_ours && rest.ends_with(END))
}

/// The name of a window while it is written.
pub(super) fn unfinished(number: u64) -> String {
    format!("{NEW}{number}")
}

/// Whether a file is a window that was never finished.
pub(super) fn is_unfinished(name: &str) -> bool {
    name.strip_prefix(NEW).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

/// `20261201T133212Z`; the beginning of 1970 for what is before.
fn utc(ms: i64) -> String {
    let date = tma::text::date(u64::try_from(ms / 1000).unwrap_or(0));
    date.chars().filter(|c| !matches!(c, '-' | ':')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_windows_do_whatever_the_clock_says() {
        let boot = Some("7ad1c1b2-0000-4000-8000-000000000000");
        let later = of(9, 1_796_131_932_000, boot);
        assert_eq!(later, "000000000009-20261201T133212Z-7ad1c1b2.json.gz");
        let set_back = of(10, 951_782_400_000, None);
        assert_eq!(set_back, "000000000010-20000229T000000Z-unknown.json.gz");
        assert!(later < set_back);
        assert_eq!((number(&later), number(&set_back)), (Some(9), Some(10)));
    }

    #[test]
    fn other_files_are_no_windows() {
        for other in ["", "1-2.json.gz", ".lock", "000000000001-x.json", "x-y.json.gz", ".new-7"] {
            assert_eq!(number(other), None, "{other}");
        }
        assert!(is_unfinished(&unfinished(7)) && !is_unfinished(".new-7.bak"));
    }
}
