//! CPU time and context switches from files in `/proc`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// `/proc/stat`, which is opened once: an interval of 100 ms asks for it again and again.
#[derive(Debug)]
pub struct StatFile {
    path: PathBuf,
    file: Option<File>,
    bytes: Vec<u8>,
}

impl Default for StatFile {
    fn default() -> Self {
        Self::at("/proc/stat".into())
    }
}

impl StatFile {
    fn at(path: PathBuf) -> Self {
        Self { path, file: None, bytes: Vec::new() }
    }

    /// Its current text.
    pub fn text(&mut self) -> Option<&str> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let file = self.file.as_ref()?;
        let mut length = 0;
        loop {
            if length == self.bytes.len() {
                self.bytes.resize((2 * length).max(4096), 0);
            }
            match file.read_at(&mut self.bytes[length..], length as u64).ok()? {
                0 => return std::str::from_utf8(&self.bytes[..length]).ok(),
                more => length += more,
            }
        }
    }
}

/// Context switches of one thread, voluntary and not, by /proc/PID/task/TID/status
/// (proc_pid_status(5)).
pub fn switches(status: &str) -> Option<u64> {
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().parse().ok()
    };
    field("voluntary_ctxt_switches")?.checked_add(field("nonvoluntary_ctxt_switches")?)
}

/// Non-idle time of `cpus` since boot, by the text of /proc/stat with `ticks` a second. proc_stat(5):
/// user, nice, system, idle, iowait, irq, softirq and steal; guests' time is in user and nice already.
/// A CPU that is offline has no line, but is part of the total. `None`: no CPU is listed.
pub fn busy(stat: &str, cpus: &[u32], ticks: u64) -> Option<Duration> {
    const BUSY: [usize; 6] = [0, 1, 2, 5, 6, 7];
    let (mut all, mut listed, mut ours, mut found) = (0, 0, 0, 0);
    for line in stat.lines() {
        let Some(rest) = line.strip_prefix("cpu") else { continue };
        let (number, fields) = rest.split_once(' ')?;
        let fields: Vec<u64> = fields.split_whitespace().map_while(|f| f.parse().ok()).collect();
        // User, nice and system are everywhere; the others came with Linux 2.6.
        fields.get(2)?;
        let time = BUSY.iter().filter_map(|at| fields.get(*at)).sum::<u64>();
        match number.parse::<u32>() {
            Err(_) => all = time,
            Ok(cpu) => {
                listed += time;
                if cpus.contains(&cpu) {
                    ours += time;
                    found += 1;
                }
            }
        }
    }
    let offline = if found < cpus.len() { all.saturating_sub(listed) } else { 0 };
    (ticks > 0 && found > 0)
        .then(|| Duration::from_secs_f64((ours + offline) as f64 / ticks as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        // By hand: CPU 0: 100 + 1 + 20 + 3 + 4 + 5 = 133; CPU 10: 7. Guest time (50) is in user.
        let stat = "cpu  107 1 20 9000 80 3 4 5 50 0\ncpu0 100 1 20 4000 80 3 4 5 50 0\n\
                    cpu1 9 0 0 0 0 0 0 0 0 0\ncpu10 7 0 0 5000 0 0 0 0 0 0\nintr 5\n";
        assert_eq!(busy(stat, &[0, 10], 100), Some(Duration::from_millis(1400)));
        assert_eq!(busy(stat, &[2], 100), None);
    }

    #[test]
    fn the_time_of_a_cpu_that_is_offline_is_what_the_others_leave_of_the_total() {
        // By hand: 200 + 10 of all, 150 of CPU 0; CPU 1 has no line.
        let stat = "cpu  200 0 10 9000\ncpu0 150 0 0 4000\n";
        assert_eq!(busy(stat, &[0, 1], 100), Some(Duration::from_millis(2100)));
        assert_eq!(busy(stat, &[0], 100), Some(Duration::from_millis(1500)));
        assert_eq!(busy("", &[0], 100), None);
    }

    #[test]
    fn each_reading_of_the_file_is_new() {
        assert!(StatFile::default().text().is_some_and(|text| text.starts_with("cpu ")));
        let path = std::env::temp_dir().join(format!("tdtool-stat-{}", std::process::id()));
        let mut file = StatFile::at(path.clone());
        // Longer than the first buffer, then shorter.
        for content in ["cpu 1\n".repeat(3000), "cpu 2\n".to_owned()] {
            std::fs::write(&path, &content).expect("write");
            assert_eq!(file.text(), Some(content.as_str()));
        }
        std::fs::remove_file(&path).expect("remove");
    }

    #[test]
    fn switches_of_both_kinds_are_told() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(switches(status), Some(695));
        assert_eq!(switches("Name:\ta\n"), None);
    }
}
