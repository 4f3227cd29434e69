//! The options of `tdtool record --every`, and their values.

use crate::cli::measure::usage;
use crate::cli::options::{Invalid, label};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tma::Result;

const HEADING: &str = "Windows";
/// Shortest window.
const SHORTEST: Duration = Duration::from_millis(50);

#[derive(Args)]
pub struct WindowArgs {
    /// Record a window every TIME (10s, 5m, 1h) until interrupted; implies -a
    #[arg(
        long, value_name = "TIME", value_parser = time, requires_all = ["length", "ring", "max_bytes"],
        conflicts_with_all = [
            "output", "interval", "duration", "delay", "control", "by", "call_graph", "registers", "branches",
            "loads", "node",
        ],
        help_heading = HEADING
    )]
    pub every: Option<Duration>,
    /// Length of a window
    #[arg(long = "for", value_name = "TIME", value_parser = time, requires = "every", help_heading = HEADING)]
    pub length: Option<Duration>,
    /// Folder of the windows, one file each; the oldest make room
    #[arg(long, value_name = "DIR", requires = "every", help_heading = HEADING)]
    pub ring: Option<PathBuf>,
    /// Most bytes of all windows: 100M, 1G
    #[arg(long, value_name = "N", value_parser = size, requires = "every", help_heading = HEADING)]
    pub max_bytes: Option<u64>,
    /// Share of one core that recording may take; windows are skipped beyond it
    #[arg(long, value_name = "SHARE", default_value = "0.5%", value_parser = share, requires = "every", help_heading = HEADING)]
    pub budget: f64,
    /// Label of the host, in every window; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = label, requires = "every", help_heading = HEADING)]
    pub label: Vec<(String, String)>,
}

/// `200ms`, `10s`, `5m`, `1h`.
fn time(text: &str) -> std::result::Result<Duration, Invalid> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(Invalid::Time),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * unit);
    let seconds = seconds.filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0);
    seconds.map(Duration::from_secs_f64).ok_or(Invalid::Time)
}

/// Bytes, or `64K`, `100M`, `1G`.
fn size(text: &str) -> std::result::Result<u64, Invalid> {
    let plain = text.strip_suffix("iB").or(text.strip_suffix('B')).unwrap_or(text);
    let (number, shift) = match plain.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&plain[..at], 10),
        Some((at, 'M')) => (&plain[..at], 20),
        Some((at, 'G')) => (&plain[..at], 30),
        _ => (plain, 0),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or(Invalid::Size)
}

/// `0.5%`, or the same without its sign, as a ratio.
fn share(text: &str) -> std::result::Result<f64, Invalid> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent.map(|percent| percent / 100.0).ok_or(Invalid::Percent)
}

impl WindowArgs {
    /// Refuses contradictory options.
    ///
    /// # Errors
    /// Which they are; `is_doubled`: a command and another target are given.
    pub fn check(&self, is_doubled: bool) -> Result<()> {
        let (Some(every), Some(length)) = (self.every, self.length) else { return Ok(()) };
        if is_doubled {
            return Err(usage(
                "a command beside -p, -t, -a, -C or --cgroup",
                "choose one of them: without any, all CPUs are measured",
            ));
        }
        if length > every || length < SHORTEST {
            let shortest = SHORTEST.as_millis();
            return Err(usage(
                "--for is longer than --every, or too short",
                &format!("windows take {shortest}ms or more, for example --every 5m --for 10s"),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_people_write_them() {
        let of = |text| time(text).map(|time| time.as_millis()).ok();
        assert_eq!(
            ["5m", "10s", "200ms", "1h", "1.5"].map(of),
            [Some(300_000), Some(10_000), Some(200), Some(3_600_000), Some(1500)]
        );
        assert_eq!(["", "s", "-1s", "5d", "0s", "inf", "2000h"].map(of), [None; 7]);
        let of = |text| size(text).ok();
        assert_eq!(
            ["64K", "100M", "1G", "4096", "2MiB"].map(of),
            [Some(65_536), Some(100 << 20), Some(1 << 30), Some(4096), Some(2 << 20)]
        );
        assert_eq!(["", "M", "1T", "-1", "99999999999G"].map(of), [None; 5]);
        let of = |text| share(text).ok();
        assert_eq!(["0.5%", "1", "100 %"].map(of), [Some(0.005), Some(0.01), Some(1.0)]);
        assert_eq!(["0%", "101", "x"].map(of), [None; 3]);
        assert!(label("a=b=c").is_ok_and(|of| of == ("a".to_owned(), "b=c".to_owned())));
        assert!(label("=b").is_err() && label("a").is_err());
    }
}
