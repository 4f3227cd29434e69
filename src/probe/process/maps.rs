//! The mappings of a process, from `/proc/PID/maps` (proc_pid_maps(5)).

use nix::sys::stat::{major, minor};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
    /// `r`, `w`, `x` (`-` if missing), and `p` for private or `s` for shared.
    pub rights: String,
    /// Offset of its start in the file.
    pub offset: u64,
    device: (u64, u64),
    inode: u64,
    /// The file, or a name such as `[heap]` and `[stack]`; empty for other anonymous memory.
    pub path: String,
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = fields.next()?.split_once('-')?;
        let rights = fields.next()?.to_owned();
        let offset = hex(fields.next()?)?;
        let (device_major, device_minor) = fields.next()?.split_once(':')?;
        let device = (hex(device_major)?, hex(device_minor)?);
        let inode = fields.next()?.parse().ok()?;
        let path = fields.next().unwrap_or_default().trim_start().to_owned();
        Some(Self { start: hex(start)?, end: hex(end)?, rights, offset, device, inode, path })
    }

    /// Whether it can be executed.
    pub fn is_executable(&self) -> bool {
        self.rights.as_bytes().get(2) == Some(&b'x')
    }

    /// Whether it can be written.
    pub fn is_writable(&self) -> bool {
        self.rights.as_bytes().get(1) == Some(&b'w')
    }
}

/// The mappings of a process, in order of address; none if it has ended.
pub fn mappings(pid: i32) -> Vec<Mapping> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&maps).lines().filter_map(Mapping::parse).collect()
}

/// A file to be found among mappings.
#[derive(Debug, Clone)]
pub struct Image {
    path: PathBuf,
    device: (u64, u64),
    inode: u64,
}

impl Image {
    /// The file at `path`.
    ///
    /// # Errors
    /// There is no such file, or it is not accessible.
    pub fn new(path: &Path) -> std::io::Result<Self> {
        let path = tma::files::resolved(path)?;
        let metadata = path.metadata()?;
        let device = (major(metadata.dev()), minor(metadata.dev()));
        // As the process sees it: /proc/PID/root/…
        let inside = path.strip_prefix("/proc").ok().and_then(|rest| {
            let mut rest = rest.iter().skip(1);
            let is_root = rest.next()? == "root";
            is_root.then(|| Path::new("/").join(rest.collect::<PathBuf>()))
        });
        let path = inside.unwrap_or(path);
        Ok(Self { path, device, inode: metadata.ino() })
    }

    /// The address of the code at `offset` of the file.
    pub fn find(&self, mappings: &[Mapping], offset: u64) -> Option<u64> {
        // Overlay file systems report another device for a mapping than for the file.
        let is_it = |m: &&Mapping| {
            (m.inode == self.inode && m.device == self.device) || Path::new(&m.path) == self.path
        };
        let address = |m: &Mapping| {
            let address = m.start.checked_add(offset.checked_sub(m.offset)?)?;
            (address < m.end).then_some(address)
        };
        mappings.iter().filter(|m| m.is_executable()).filter(is_it).find_map(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_found_in_the_executable_mapping_of_the_file() {
        // As proc_pid_maps(5) shows them.
        let lines = "55a0c0000000-55a0c0001000 r--p 00000000 fe:01 42    /bin/a b\n\
                     55a0c0001000-55a0c0003000 r-xp 00001000 fe:01 42    /bin/a b\n\
                     7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0     [stack]\n";
        let all: Vec<Mapping> = lines.lines().filter_map(Mapping::parse).collect();
        assert_eq!(all.len(), 3);
        assert_eq!((&*all[2].rights, &*all[2].path), ("rw-p", "[stack]"));
        let image = |path: &str, inode| Image { path: path.into(), device: (0xfe, 1), inode };
        assert_eq!(image("/bin/other", 42).find(&all, 0x1139), Some(0x55a0_c000_1139));
        assert_eq!(image("/bin/a b", 7).find(&all, 0x1139), Some(0x55a0_c000_1139));
        assert_eq!(image("/bin/other", 7).find(&all, 0x1139), None);
        assert_eq!(image("/bin/a b", 42).find(&all, 0x10), None, "it is not executable there");
        assert_eq!(image("/bin/a b", 42).find(&all, 0x3000), None);
    }
}
