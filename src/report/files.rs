//! Writes files for the user: whole or not at all, and never over what tdtool reads.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tma::files::{is_open_already, open_stream};
use tma::{Error, Result};

/// Held while a file is being replaced.
static REPLACING: Mutex<()> = Mutex::new(());

/// Waits until no file is half-written; none is written until this is dropped, or the process ends.
pub fn between_writes() -> MutexGuard<'static, ()> {
    REPLACING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes `bytes` to `path`. A file of that name is replaced at once, when the new one is complete, and keeps its
/// content if anything fails; only where it cannot be replaced it is written in place. `option` is named in the remedy.
///
/// # Errors
/// It cannot be written, is one of `inputs` or a program, or is a symbolic link to a file: the link may lead
/// anywhere.
pub fn write_whole(path: &Path, bytes: &[u8], inputs: &[PathBuf], option: &str) -> Result<()> {
    if is_stdout(path) {
        // Not by its name in /dev: that would cut off what a file holds already.
        let mut out = std::io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush()).or_else(gone);
        return written.map_err(|e| Error::failed("cannot write to standard output").because(e));
    }
    check_output(path, inputs, option)?;
    let failed = |e: std::io::Error| {
        not_written(format!("cannot write {}", path.display()), path, &e, option)
    };
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        // A pipe or a device takes what it is given.
        let mut out = open_stream(path).map_err(failed)?;
        return out.write_all(bytes).or_else(gone).map_err(failed);
    }
    replace(path, bytes).map_err(failed)
}

/// Whether an output is standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Why an output was not written, and what to do; `what` failed in one sentence.
pub fn not_written(what: String, path: &Path, error: &std::io::Error, option: &str) -> Error {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty() && !f.exists());
    let remedy = match (error.kind(), folder) {
        (ErrorKind::NotFound, Some(folder)) => {
            let quoted = tma::shell::quoted(&[folder]);
            let remedy = format!("mkdir -p {quoted}, or choose another place with {option}");
            return Error::failed(what)
                .because(format!("there is no folder {}", folder.display()))
                .hint(remedy);
        }
        (ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _) => {
            "make room on the disk".to_owned()
        }
        (ErrorKind::TimedOut, _) => {
            format!("start its reader first: cat {} > FILE &", path.display())
        }
        (ErrorKind::FileTooLarge, _) => "raise the limit on file sizes (ulimit -f)".to_owned(),
        _ => format!("choose another place with {option}"),
    };
    Error::failed(what).because(error).hint(remedy)
}

/// Refuses an output that is one of the `inputs`, a program, or a symbolic link to a file.
///
/// # Errors
/// It is one of these.
pub fn check_output(path: &Path, inputs: &[PathBuf], option: &str) -> Result<()> {
    let Ok(named) = fs::symlink_metadata(path) else { return Ok(()) };
    let output = fs::metadata(path).ok();
    if output.as_ref().is_some_and(|output| !output.is_file()) {
        return Ok(());
    }
    if let Some(output) = &output
        && inputs.iter().any(|i| fs::metadata(i).is_ok_and(|i| same_file(&i, output)))
    {
        return Err(Error::usage(format!("{} is also the input", path.display()))
            .because("it would be overwritten by its own report")
            .hint(format!("choose another place with {option}")));
    }
    if output.is_some() && is_program(path) {
        return Err(Error::usage(format!("{} is a program or a library", path.display()))
            .because("it would be overwritten by a report")
            .hint(format!("choose another place with {option}, or remove it first")));
    }
    if named.is_symlink() && !is_open_already(path) {
        let target = fs::read_link(path).unwrap_or_else(|_| path.to_owned());
        return Err(Error::usage(format!("{} is a symbolic link", path.display()))
            .because(format!("it leads to {}", target.display()))
            .hint(format!("name that file with {option}, or remove the link")));
    }
    Ok(())
}

/// As [`check_output`], and that the folder is there: for what takes long before it is written.
///
/// # Errors
/// As [`check_output`]; there is no such folder.
pub fn check_place(path: &Path, inputs: &[PathBuf], option: &str) -> Result<()> {
    if is_stdout(path) {
        return Ok(());
    }
    check_output(path, inputs, option)?;
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        None => Ok(()),
        Some(_) => {
            let what = format!("cannot write {}", path.display());
            Err(not_written(what, path, &ErrorKind::NotFound.into(), option))
        }
    }
}

/// Whether it begins as an ELF file does (elf(5)): a command, a recorded module or what --binary names, by whatever
/// path; no output of tdtool does.
fn is_program(path: &Path) -> bool {
    begins(path, b"\x7fELF")
}

/// Whether it is a program or a script, by how it begins: no recording does so.
pub fn is_command(path: &Path) -> bool {
    // A pipe would lose what is read.
    path.is_file() && (is_program(path) || begins(path, b"#!"))
}

/// A program of the current folder as a shell finds it: `./name`.
pub fn as_command(path: &Path) -> PathBuf {
    let is_here = path.parent().is_some_and(|folder| folder.as_os_str().is_empty());
    if is_here && path.is_file() { Path::new(".").join(path) } else { path.to_owned() }
}

fn begins(path: &Path, magic: &[u8]) -> bool {
    let mut start = vec![0; magic.len()];
    let read = tma::files::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == magic
}

fn same_file(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Writes beside `path` and renames; in place where that is not possible: the folder takes no new file, the file is
/// mounted, or another user's.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let old = fs::metadata(path).ok();
    let beside = path.with_file_name(format!(".tdtool-{}", std::process::id()));
    let own = nix::unistd::geteuid().as_raw();
    let is_foreign = old.as_ref().is_some_and(|old| old.uid() != own || old.nlink() > 1);
    if is_open_already(path) || is_foreign {
        return in_place(path, bytes);
    }
    let _replacing = between_writes();
    let Ok(mut file) = OpenOptions::new().write(true).create_new(true).open(&beside) else {
        return in_place(path, bytes);
    };
    if let Some(old) = old {
        let _ = file.set_permissions(old.permissions());
    }
    let written = file.write_all(bytes).and_then(|()| {
        fs::rename(&beside, path).or_else(|e| match e.kind() {
            ErrorKind::ResourceBusy | ErrorKind::CrossesDevices => in_place(path, bytes),
            _ => Err(e),
        })
    });
    let _ = fs::remove_file(&beside);
    written
}

fn in_place(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    if !is_open_already(path) {
        options.custom_flags(libc::O_NOFOLLOW);
    }
    let mut file: File = options.open(path)?;
    file.write_all(bytes)
}

/// A reader that went away has what it wanted.
fn gone(e: std::io::Error) -> std::io::Result<()> {
    if e.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(e) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_or_a_link_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::write(place("input"), "precious").unwrap();
        fs::hard_link(place("input"), place("same")).unwrap();
        std::os::unix::fs::symlink(place("input"), place("link")).unwrap();
        std::os::unix::fs::symlink(place("nothing"), place("dangling")).unwrap();
        let write = |name: &str| write_whole(&place(name), b"new", &[place("input")], "-o");
        for name in ["input", "same", "link", "dangling"] {
            let error = write(name).unwrap_err();
            assert!(error.remedy().unwrap().contains("-o"), "{name}: {error:?}");
        }
        assert_eq!(fs::read(place("input")).unwrap(), b"precious");
        let error = write_whole(&place("link"), b"new", &[], "-o").unwrap_err();
        assert!(error.what().contains("symbolic link"), "{error:?}");

        write("output").unwrap();
        assert_eq!(fs::read(place("output")).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "nothing is left behind");
    }
}
