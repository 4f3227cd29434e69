//! Parses sizes (`4096`, `64K`, `256MiB`, `1G`), and writes the command line that runs a built-in program: this
//! executable, independent of PATH.

use std::ffi::{OsStr, OsString};
use std::fs;
use tma::{Error, Result};

/// The kernel's link to the running executable; valid after fork even if the file was replaced.
const OWN: &str = "/proc/self/exe";

/// The command line that runs workload `name` with `args` (as `tdtool workload run` takes them).
///
/// The executable is the running one, which must be `tdtool`: elsewhere (a library's user, a
/// test) the result would start that program instead.
pub fn command<A: AsRef<OsStr>>(name: &str, args: impl IntoIterator<Item = A>) -> Vec<OsString> {
    let mut line = vec![own_executable(), "workload".into(), "run".into(), name.into()];
    line.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
    line
}

/// `line` ready to be executed: `tdtool workload …` means the running executable, whether or not
/// a `tdtool` is on PATH; any other command is unchanged.
pub fn resolve(line: &[OsString]) -> Vec<OsString> {
    let mut line = line.to_vec();
    if line.len() > 1 && line[0] == "tdtool" && line[1] == "workload" {
        line[0] = own_executable();
    }
    line
}

/// The running executable's path, or its link in /proc if the file was removed.
fn own_executable() -> OsString {
    match fs::read_link(OWN) {
        Ok(path) if path.is_file() => path.into_os_string(),
        _ => OWN.into(),
    }
}

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
    fn a_workload_runs_from_the_executable_itself() {
        let line = command("stream", ["--size", "64M"]);
        assert!(std::path::Path::new(&line[0]).is_absolute());
        assert_eq!(line[1..], ["workload", "run", "stream", "--size", "64M"].map(OsString::from));
    }

    #[test]
    fn only_our_own_workload_command_is_resolved() {
        let ours = ["tdtool", "workload", "run", "stream"].map(OsString::from);
        assert_eq!(resolve(&ours), command("stream", [""; 0]));
        for other in [&["tdtool", "report"][..], &["tdtool"], &["./tdtool", "workload"], &[]] {
            let other: Vec<OsString> = other.iter().map(OsString::from).collect();
            assert_eq!(resolve(&other), other);
        }
    }

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
