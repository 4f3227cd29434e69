//! Files that processes have mapped, opened through the process: in another mount namespace a path means another file,
//! and after a file was replaced, none.

use nix::sys::stat::{major, minor};
use std::fs::{File, metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Appended by the kernel to the path of a deleted file.
const DELETED: &str = " (deleted)";

/// A mapping of a file, as the kernel names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapped {
    pub pid: u32,
    pub start: u64,
    pub end: u64,
    pub path: String,
    /// Device and inode, where they are known.
    pub device: Option<(u64, u64)>,
    pub inode: Option<u64>,
}

impl Mapped {
    /// Whether it is of a file that has a path.
    pub fn is_of_file(&self) -> bool {
        self.path.starts_with('/') && !self.path.starts_with("//") && self.inode != Some(0)
    }

    /// Its file; `None` if it cannot be reached, because the process has ended or is another user's.
    pub fn open(&self) -> Option<File> {
        let path = self.path.strip_suffix(DELETED).unwrap_or(&self.path);
        let of_process = |name: &str| PathBuf::from(format!("/proc/{}/{name}", self.pid));
        let of_process = [
            of_process(&format!("root{path}")),
            of_process("exe"),
            // Only with CAP_CHECKPOINT_RESTORE.
            of_process(&format!("map_files/{:x}-{:x}", self.start, self.end)),
        ];
        let here = PathBuf::from(path);
        let all = of_process.iter().chain([&here]).filter_map(|place| tma::files::open(place).ok());
        let files: Vec<File> = all.collect();
        // Overlay and btrfs report another device for a mapping than for the file.
        let exact = files.iter().position(|file| self.is(file, true));
        let found = exact.or_else(|| files.iter().position(|file| self.is(file, false)))?;
        files.into_iter().nth(found)
    }

    fn is(&self, file: &File, with_device: bool) -> bool {
        let Ok(found) = file.metadata() else { return false };
        let device = (major(found.dev()), minor(found.dev()));
        self.inode.is_none_or(|inode| inode == found.ino())
            && (!with_device || self.device.is_none_or(|own| own == device))
    }
}

/// Whether `path` leads to this file from here.
pub(super) fn is_here(path: &str, file: &File) -> bool {
    let place = |of: std::io::Result<std::fs::Metadata>| of.ok().map(|m| (m.dev(), m.ino()));
    let here = place(metadata(Path::new(path)));
    here.is_some() && here == place(file.metadata())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_file_is_known_by_its_inode_not_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, "old").unwrap();
        let old = metadata(&path).unwrap();
        let mapped = Mapped {
            pid: std::process::id(),
            start: 0,
            end: 0,
            path: path.display().to_string(),
            device: Some((major(old.dev()), minor(old.dev()))),
            inode: Some(old.ino()),
        };
        let mut content = String::new();
        let file = mapped.open().unwrap();
        (&file).read_to_string(&mut content).unwrap();
        assert!(content == "old" && is_here(&mapped.path, &file));
        // Replaced: another file has its path now, which is not taken for it.
        std::fs::write(folder.path().join("next"), "new").unwrap();
        std::fs::rename(folder.path().join("next"), &path).unwrap();
        assert!(mapped.open().is_none() && !is_here(&mapped.path, &file));
        let deleted = Mapped { path: mapped.path.clone() + DELETED, ..mapped };
        assert!(deleted.open().is_none());
    }
}
