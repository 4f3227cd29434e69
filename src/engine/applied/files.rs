//! Files that are changed for a while: the source and the program. What was there comes back, also after errors: it
//! has a second name meanwhile, which is renamed back.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tma::shell::quoted;
use tma::{Error, Result};

/// Largest file that is changed, in bytes.
const MOST: u64 = 1 << 30;
/// Ending of the second name.
const ORIGINAL: &str = "tdtool-original";

/// A file, what it was at first, and what it is to be in the end.
pub(super) struct Changed {
    pub path: PathBuf,
    pub first: Vec<u8>,
    pub accepted: Vec<u8>,
    found: Metadata,
    /// What it is, unless someone else changes it; absent: what a command makes of it.
    last: Option<Vec<u8>>,
    is_written: bool,
}

impl Changed {
    /// A file that can be changed. It is also `NAME.tdtool-original` meanwhile: a program that is killed restores
    /// nothing.
    ///
    /// # Errors
    /// It cannot be read or linked; there is one of an earlier run already; it could not come back as it was.
    pub fn of(path: &Path) -> Result<Self> {
        let failed = |e| cannot_change(path, &e);
        let found = fs::metadata(path).map_err(failed)?;
        let why = match found.mode() {
            _ if found.nlink() > 1 => Some("it has several hard links"),
            mode if mode & 0o6000 != 0 => Some("it runs as another user or group (setuid, setgid)"),
            mode if mode & 0o200 == 0 => Some("it may not be written"),
            _ => None,
        };
        if let Some(why) = why {
            return Err(cannot_change(path, &why));
        }
        let copy = copy_of(path);
        fs::hard_link(path, &copy).map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => left(&copy),
            _ => failed(e),
        })?;
        let first = tma::files::read(path, MOST).map_err(|e| {
            // It may not be there any more.
            let _ = fs::remove_file(&copy);
            failed(e)
        })?;
        let (path, accepted, last) = (path.to_owned(), first.clone(), Some(first.clone()));
        Ok(Self { path, first, accepted, found, last, is_written: false })
    }

    /// Writes other content for a while: whole or not at all.
    ///
    /// # Errors
    /// It cannot be written; someone else changed it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.is_written = true;
        let beside = beside(&self.path, &format!("tdtool-{}", std::process::id()));
        let written = fs::write(&beside, bytes)
            .and_then(|()| chown(&beside, Some(self.found.uid()), Some(self.found.gid())))
            .and_then(|()| fs::set_permissions(&beside, self.found.permissions()))
            .and_then(|()| fs::rename(&beside, &self.path));
        written.map_err(|e| {
            // It may not be there.
            let _ = fs::remove_file(&beside);
            cannot_change(&self.path, &e)
        })?;
        self.last = Some(bytes.to_owned());
        Ok(())
    }

    /// Before a command changes it.
    pub fn expose(&mut self) {
        self.last = None;
    }

    /// What a command made of it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn taken(&mut self) -> Result<Vec<u8>> {
        let now = self.now()?;
        self.last = Some(now.clone());
        Ok(now)
    }

    fn now(&self) -> Result<Vec<u8>> {
        tma::files::read(&self.path, MOST).map_err(|e| cannot_change(&self.path, &e))
    }

    /// Refuses to overwrite what someone else wrote.
    fn check(&self) -> Result<()> {
        match &self.last {
            Some(last) if self.now()? != *last => {
                let what = format!("{} was changed by another program", self.path.display());
                let copy = copy_of(&self.path);
                let hint = format!("compare it with {}, then remove that", copy.display());
                Err(Error::failed(what).because("it is left as it is now").hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Writes what was accepted last.
    ///
    /// # Errors
    /// It cannot be written; someone else changed it.
    pub fn restore(&mut self) -> Result<()> {
        if self.last.as_ref() == Some(&self.accepted) {
            return Ok(());
        }
        let accepted = self.accepted.clone();
        self.write(&accepted).map_err(|error| self.with_remedy(error))
    }

    /// Restores it for good: the file of the beginning, unless another content was accepted.
    ///
    /// # Errors
    /// It cannot be written; someone else changed it.
    pub fn end(&mut self) -> Result<()> {
        let copy = copy_of(&self.path);
        if self.accepted != self.first {
            self.restore()?;
        } else if std::mem::take(&mut self.is_written) {
            // Newer than what was built of another content.
            let renamed = self.check().and_then(|()| {
                let renamed = fs::rename(&copy, &self.path).and_then(|()| File::open(&self.path));
                let touched = renamed.and_then(|file| file.set_modified(SystemTime::now()));
                touched.map_err(|e| cannot_change(&self.path, &e))
            });
            self.is_written = renamed.is_err();
            renamed.map_err(|error| self.with_remedy(error))?;
            self.last = Some(self.first.clone());
        }
        // It may have been renamed.
        let _ = fs::remove_file(copy);
        Ok(())
    }

    fn with_remedy(&self, error: Error) -> Error {
        let words = [Path::new("mv"), &copy_of(&self.path), &self.path];
        match error.remedy() {
            Some(_) => error,
            None => error.hint(format!("`{}`", quoted(&words))),
        }
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        // The original stays where the file could not be restored.
        let _ = self.end();
    }
}

/// Refuses a folder where an earlier run left the original of a file.
///
/// # Errors
/// There is one in it or below.
pub(super) fn check(folder: &Path) -> Result<()> {
    let mut folders = vec![folder.to_owned()];
    let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
    let own = device(folder);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == ORIGINAL) {
                return Err(left(&path));
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && device(&path) == own {
                folders.push(path);
            }
        }
    }
    Ok(())
}

fn left(copy: &Path) -> Error {
    let words = [Path::new("mv"), copy, &copy.with_extension("")];
    let back = quoted(&words);
    Error::failed(format!("{} is there already", copy.display()))
        .because("an earlier run was killed before it could restore the file, or one still runs")
        .hint(format!("`{back}` if the file has a prefetch that you do not want, else remove it"))
}

fn copy_of(path: &Path) -> PathBuf {
    beside(path, ORIGINAL)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

fn cannot_change(path: &Path, why: &impl std::fmt::Display) -> Error {
    Error::failed(format!("cannot change {}", path.display())).because(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// A folder with a file.
    fn folder(name: &str) -> (PathBuf, PathBuf) {
        let folder = std::env::temp_dir().join(format!("tdtool-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.c");
        fs::write(&path, "first").unwrap();
        (folder, path)
    }

    #[test]
    fn the_same_file_comes_back_unless_another_content_was_accepted() {
        let (folder, path) = folder("changed");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let found = || fs::metadata(&path).map(|it| (it.ino(), it.mode(), it.nlink())).unwrap();
        let before = found();
        let mut file = Changed::of(&path).unwrap();
        file.write(b"other").unwrap();
        assert_eq!(file.now().unwrap(), b"other");
        assert!(Changed::of(&path).is_err() && check(&folder).is_err(), "the original is there");
        file.restore().unwrap();
        drop(file);
        assert_eq!((fs::read(&path).unwrap(), found()), (b"first".to_vec(), before));
        let mut file = Changed::of(&path).unwrap();
        file.write(b"better").unwrap();
        file.accepted = b"better".to_vec();
        drop(file);
        assert_eq!((fs::read(&path).unwrap(), found().1), (b"better".to_vec(), before.1));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        check(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_someone_else_writes_is_left() {
        let (folder, path) = folder("edited");
        let mut file = Changed::of(&path).unwrap();
        file.write(b"other").unwrap();
        fs::write(&path, "edited").unwrap();
        for refused in [file.write(b"more"), file.restore(), file.end()] {
            let remedy = refused.unwrap_err().remedy().unwrap().to_owned();
            assert!(remedy.contains("a.c.tdtool-original"), "{remedy}");
        }
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"edited");
        assert_eq!(fs::read(copy_of(&path)).unwrap(), b"first");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_could_not_be_restored_says_how() {
        let (folder, path) = folder("stuck");
        let mut file = Changed::of(&path).unwrap();
        file.write(b"other").unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        file.expose();
        let remedy = file.end().unwrap_err().remedy().unwrap().to_owned();
        assert!(remedy.starts_with("`mv ") && remedy.ends_with("a.c`"), "{remedy}");
        drop(file);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_could_not_come_back_as_it_was_is_refused() {
        let (folder, path) = folder("refused");
        for mode in [0o444, 0o4755, 0o2755] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(Changed::of(&path).is_err(), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::hard_link(&path, folder.join("b.c")).unwrap();
        assert!(Changed::of(&path).is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
