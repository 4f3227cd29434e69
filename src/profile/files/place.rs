//! Places where a file may lie: a path of this system, or of a system whose root is a folder here. Names in a
//! recording or a debug link stay below that folder, whatever `..`, absolute paths and symbolic links they have.
//! Lists the files that belong to a build-id; compares and prints build-ids.

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::{Component, Path, PathBuf};

/// Where a file may lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The folder that stands for `/`; `None`: this system's.
    root: Option<PathBuf>,
    path: PathBuf,
}

impl Place {
    /// A path of this system.
    pub fn here(path: impl Into<PathBuf>) -> Self {
        Self { root: None, path: path.into() }
    }

    /// A path of the system below `root`.
    pub fn below(root: &Path, path: impl AsRef<Path>) -> Self {
        Self { root: Some(root.to_owned()), path: Path::new("/").join(path) }
    }

    /// The path, as seen from here.
    pub fn path(&self) -> PathBuf {
        match &self.root {
            Some(root) => root.join(self.path.strip_prefix("/").unwrap_or(&self.path)),
            None => self.path.clone(),
        }
    }

    /// A path in the same system: absolute, or relative to the folder of this file.
    pub fn linked(&self, path: &Path) -> Self {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        Self { root: self.root.clone(), path: folder.join(path) }
    }

    /// The folder of this file, without its root.
    pub fn folder(&self) -> PathBuf {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        folder.components().filter(|c| matches!(c, Component::Normal(_))).collect()
    }

    /// Opens it, if it is a regular file.
    ///
    /// # Errors
    /// It cannot be opened, or is none.
    pub fn open(&self) -> Result<File> {
        let Some(root) = &self.root else { return tma::files::open(&self.path) };
        let folder =
            open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        let how = OpenHow::new()
            .flags(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT);
        match openat2(&folder, &self.path, how) {
            Ok(file) => tma::files::regular(File::from(file)),
            // Linux before 5.6, and some sandboxes.
            Err(nix::Error::ENOSYS | nix::Error::EPERM) => self.open_checked(root),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`open`](Self::open): what does not resolve to a place below the root is not opened.
    fn open_checked(&self, root: &Path) -> Result<File> {
        let found = self.path().canonicalize()?;
        match found.starts_with(root.canonicalize()?) {
            true => tma::files::open(&found),
            false => Err(Error::new(ErrorKind::NotFound, "it leads out of the folder")),
        }
    }
}

/// A file that belongs to a build-id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The program.
    Program,
    /// Its debug file.
    Debug,
    /// A kernel's symbols, or its page in user space.
    Symbols,
    Vdso,
}

impl Part {
    /// Its name in caches of perf.
    pub fn of_perf(self) -> &'static str {
        match self {
            Self::Program => "elf",
            Self::Debug => "debug",
            Self::Symbols => "kallsyms",
            Self::Vdso => "vdso",
        }
    }

    /// Its name on servers and in caches of debuginfod (debuginfod(8)).
    pub fn of_debuginfod(self) -> Option<&'static str> {
        match self {
            Self::Program => Some("executable"),
            Self::Debug => Some("debuginfo"),
            Self::Symbols | Self::Vdso => None,
        }
    }
}

/// Whether two build-ids are the same: older perf pads shorter ones to 20 bytes with zeros.
pub(crate) fn same_id(left: &[u8], right: &[u8]) -> bool {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let (start, padding) = long.split_at(short.len());
    !short.is_empty() && start == short && padding.iter().all(|&byte| byte == 0)
}

/// Build-ids as tools print them.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_leads_out_of_a_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("lib")).unwrap();
        fs::write(folder.path().join("secret"), "outside").unwrap();
        fs::write(root.join("lib/real"), "inside").unwrap();
        fs::write(root.join("secret"), "inside").unwrap();
        symlink("/lib/real", root.join("absolute")).unwrap();
        symlink("../../../lib/real", root.join("lib/up")).unwrap();
        symlink(folder.path().join("secret"), root.join("out")).unwrap();
        let read = |path: &str| {
            let mut text = String::new();
            Place::below(&root, path).open()?.read_to_string(&mut text).map(|_| text)
        };
        for path in ["lib/real", "/lib/real", "absolute", "lib/up", "../secret", "lib/../../secret"]
        {
            assert_eq!(read(path).unwrap(), "inside", "{path}");
        }
        assert!(read("out").is_err());
        let linked = |path: &str| Place::below(&root, "/lib/real").linked(Path::new(path));
        assert_eq!(linked("/secret"), Place::below(&root, "/secret"));
        assert!(
            linked("../../../secret").open().is_ok_and(|file| file.metadata().unwrap().len() == 6)
        );

        let checked = |path: &str| Place::below(&root, path).open_checked(&root);
        assert!(checked("lib/real").is_ok());
        assert!(checked("../secret").is_err() && checked("out").is_err());
    }

    #[test]
    fn build_ids_may_be_padded_but_not_differ() {
        assert!(same_id(&[1, 2, 0, 0], &[1, 2]));
        assert!(same_id(&[1, 2], &[1, 2]));
        assert!(!same_id(&[1, 2, 3], &[1, 2]));
        assert!(!same_id(&[0, 0], &[]));
    }
}
