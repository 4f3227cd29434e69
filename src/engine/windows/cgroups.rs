//! Control groups of processes, read from `/proc` while they run: a sample tells its process only, which may be gone
//! when the window ends.

use smol_str::SmolStr;
use std::collections::HashMap;
use std::fs;

/// Control groups seen in a window, by process; `None`: it was gone when it was looked at.
#[derive(Debug, Default)]
pub(super) struct Cgroups(HashMap<u32, Option<SmolStr>>);

impl Cgroups {
    /// Looks at the processes that run now and were not looked at before.
    pub fn look(&mut self) {
        let pid =
            |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        let running = fs::read_dir("/proc").into_iter().flatten().filter_map(pid);
        for pid in running.collect::<Vec<u32>>() {
            self.of(pid);
        }
    }

    /// That of a process.
    pub fn of(&mut self, pid: u32) -> Option<SmolStr> {
        let read = || {
            let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
            path(&text).map(SmolStr::from)
        };
        self.0.entry(pid).or_insert_with(read).clone()
    }
}

/// The path in a text as of cgroups(7): that of version 2, which has no controllers, else the one that accounts for
/// CPU time, else the first.
fn path(text: &str) -> Option<&str> {
    let all = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    let rank = |(controllers, path): &(&str, &str)| {
        let is_cpu = controllers.split(',').any(|one| one == "cpu" || one == "cpuacct");
        match (controllers.is_empty(), is_cpu) {
            // Both versions are mounted where it is the root.
            (true, _) if *path != "/" => 0,
            (_, true) => 1,
            (true, _) => 2,
            _ => 3,
        }
    };
    // Relative to that of this process, in a namespace of its own: where it is is not known.
    all.min_by_key(rank).map(|(_, path)| path).filter(|path| !path.starts_with("/.."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_group_that_accounts_for_time_is_taken() {
        for (text, expected) in [
            ("0::/system.slice/nginx.service\n", "/system.slice/nginx.service"),
            ("0::/a:b\n", "/a:b"),
            ("4:memory:/m\n3:cpu,cpuacct:/c\n1:name=systemd:/s\n0::/\n", "/c"),
            ("4:memory:/m\n0::/\n", "/"),
            ("1:name=systemd:/s\n", "/s"),
        ] {
            assert_eq!(path(text), Some(expected), "{text}");
        }
        assert_eq!(path(""), None);
    }

    #[test]
    fn our_own_is_found_and_that_of_no_process_is_not() {
        let mut all = Cgroups::default();
        all.look();
        let own = all.of(std::process::id());
        let here = fs::read_to_string("/proc/self/cgroup").unwrap();
        assert_eq!(own.as_deref(), path(&here));
        assert_eq!(all.of(u32::MAX), None);
    }
}
