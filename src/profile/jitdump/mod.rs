//! jitdump files: code that a just-in-time compiler wrote down with names and source lines, as it made it
//! (tools/perf/Documentation/jitdump-specification.txt). `read` has the entries of a file.
//!
//! Addresses of the code are offsets in the file: memory is used for other code again.

mod read;

use crate::files::{Place, SearchPaths, Unreadable};
use crate::input::Input;
use read::{Entry, each};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

pub(crate) use read::{Function, JitProgram, elf};

/// Whether a mapping is the mark of a jitdump: the agent maps a page of `jit-PID.dump`, so that recordings name it.
pub(crate) fn is_dump(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let number = name.strip_prefix("jit-").and_then(|rest| rest.strip_suffix(".dump"));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The jitdump of process `pid` at `path`: below the roots, else here.
///
/// # Errors
/// There is none, or it is another user's.
pub(crate) fn open(search: &SearchPaths, path: &str, pid: u32) -> io::Result<File> {
    let inside = path.trim_start_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let roots = search.roots.iter();
    let below = roots.flat_map(|root| [Place::below(root, inside), Place::below(root, name)]);
    let found = below.filter_map(|place| place.open().ok()).next();
    found.map_or_else(|| owned(pid, Path::new(path)), Ok)
}

/// A file that names the functions of a process. Everyone may write to `/tmp`: only the owner of the process may
/// name its functions, or, where it has ended, this user and root; and nobody else may have written to the file.
pub(crate) fn owned(pid: u32, path: &Path) -> io::Result<File> {
    // A link may be of another than what it leads to.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    let file = tma::files::regular(options.open(path)?)?;
    let metadata = file.metadata()?;
    if metadata.mode() & libc::S_IWOTH != 0 {
        return Err(Error::new(ErrorKind::PermissionDenied, "everyone may write to it"));
    }
    let owner = metadata.uid();
    let may = match std::fs::metadata(format!("/proc/{pid}")) {
        Ok(process) => owner == process.uid(),
        Err(_) => owner == nix::unistd::geteuid().as_raw() || owner == 0,
    };
    match may {
        true => Ok(file),
        false => {
            let why = "it is another user's than the process";
            Err(Error::new(ErrorKind::PermissionDenied, why))
        }
    }
}

/// Code that is at `start..start + size` from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub time: u64,
    pub start: u64,
    pub size: u64,
    /// Offset of the code in the file.
    pub code: u64,
}

/// Code that was moved or loaded, at most `most` times, in order of time, and whether those are `CLOCK_MONOTONIC`'s.
pub(crate) fn loads(file: File, most: usize) -> Result<(Vec<Load>, bool), Unreadable> {
    let input = Input::of_file(file)?;
    let mut all: Vec<Load> = Vec::new();
    // Where the code at an address is in the file.
    let mut at: HashMap<u64, u64> = HashMap::new();
    let header = each(&input, &mut |entry| {
        let load = match entry {
            Entry::Load { time, start, size, code, .. } => Load { time, start, size, code },
            Entry::Move { time, from, start, size } => match at.remove(&from) {
                Some(code) => Load { time, start, size, code },
                None => return,
            },
            Entry::Lines { .. } => return,
        };
        if all.len() < most {
            at.insert(load.start, load.code);
            all.push(load);
        }
    })?;
    all.sort_by_key(|load| load.time);
    Ok((all, header.is_monotonic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_link_names_no_functions() {
        let folder = tempfile::tempdir().unwrap();
        let (map, link) = (folder.path().join("map"), folder.path().join("link"));
        std::fs::write(&map, "1000 10 f\n").unwrap();
        std::os::unix::fs::symlink(&map, &link).unwrap();
        let own = std::process::id();
        assert!(owned(own, &map).is_ok());
        assert!(owned(own, &link).is_err());
        let everyone = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(&map, everyone).unwrap();
        assert_eq!(owned(own, &map).unwrap_err().to_string(), "everyone may write to it");
    }

    #[test]
    fn the_mark_is_a_files_name() {
        for path in ["/tmp/jit-1.dump", "jit-4242.dump", "/home/a/.debug/jit/x.1/jit-7.dump"] {
            assert!(is_dump(path), "{path}");
        }
        for path in
            ["/tmp/jit-.dump", "/tmp/jit-1.dump.old", "/jit-1.dump/a", "//anon", "jit-x.dump"]
        {
            assert!(!is_dump(path), "{path}");
        }
    }
}
