//! Opens files that users and recordings name: only regular ones are read, and only up to a limit. Saves files for
//! the next process.

use std::fs::{File, OpenOptions, create_dir_all, remove_file, rename, write};
use std::io::{Error, ErrorKind, Read as _, Result, Seek as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most bytes of a program, a debug file or a file of rows that is read as a whole.
pub const LONGEST_PROGRAM: u64 = 2 << 30;

/// Most bytes of a text that people write or programs report: a table, a document, rows of counts.
pub const LONGEST_TEXT: u64 = 256 << 20;

/// How long a pipe may be without a reader.
const READER: Duration = Duration::from_secs(5);

/// Shorter files may be as sparse as they like.
const LONGEST_HOLE: u64 = 64 << 20;

/// Opens a regular file. Pipes and devices block or never end; whether it is one is asked of the open
/// file, as another may take its place in between.
///
/// # Errors
/// It cannot be opened, or is no regular file.
///
/// ```
/// let error = tma::files::open("/dev/zero".as_ref()).unwrap_err();
/// assert_eq!(error.to_string(), "it is a device, not a regular file");
/// ```
pub fn open(path: &Path) -> Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?)
}

/// An open file, if it is a regular one.
///
/// # Errors
/// It is no regular file.
pub fn regular(file: File) -> Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = match kind.is_dir() {
        true => "folder",
        false => match std::os::unix::fs::FileTypeExt::is_fifo(&kind) {
            true => "pipe",
            false => "device",
        },
    };
    Err(Error::new(ErrorKind::InvalidInput, format!("it is a {what}, not a regular file")))
}

/// A file that is read, as messages name it: `-` is standard input.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Whether a path means what a process has open, such as `/dev/stdout`: these are links to what the user's shell
/// opened.
pub fn is_open_already(path: &Path) -> bool {
    let all = ["/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd"];
    all.iter().any(|known| path.starts_with(known))
}

/// Opens a pipe or a device for writing; a pipe without a reader is waited for, but not for ever.
///
/// # Errors
/// Nobody reads it, or it cannot be opened.
pub fn open_stream(path: &Path) -> Result<File> {
    let start = Instant::now();
    loop {
        // Without a reader, opening a pipe would wait.
        match OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
            Ok(_reader_is_there) => return OpenOptions::new().write(true).open(path),
            Err(e) if e.raw_os_error() != Some(libc::ENXIO) => return Err(e),
            Err(_) if start.elapsed() < READER => std::thread::sleep(Duration::from_millis(50)),
            Err(_) => {
                let why = format!("it is a pipe, and nobody read it for {} s", READER.as_secs());
                return Err(Error::new(ErrorKind::TimedOut, why));
            }
        }
    }
}

/// A path without links, as it is compared with others. One through a process (`/proc/PID/root/…`, `/proc/PID/exe`) stays as
/// it is: what its links read as is a path of another mount namespace, or of a file that is gone.
///
/// # Errors
/// There is no such file.
pub fn resolved(path: &Path) -> Result<PathBuf> {
    let pid = path.strip_prefix("/proc").ok().and_then(|rest| rest.iter().next());
    let is_of_process = pid.and_then(|pid| pid.to_str()?.parse::<u32>().ok()).is_some();
    match is_of_process {
        true => path.metadata().map(|_| path.to_owned()),
        false => path.canonicalize(),
    }
}

/// The bytes of a regular file, at most `most`.
///
/// # Errors
/// As [`open`], or it is longer.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_open(&open(path)?, most)
}

/// As [`read`], of a regular file that is open, from its start.
///
/// # Errors
/// It is longer than `most`, or hardly any of it is on the disk: holes read as zeros, which nothing else limits.
pub fn read_open(file: &File, most: u64) -> Result<Vec<u8>> {
    let found = file.metadata()?;
    let length = found.len();
    if length > most {
        let why = format!("it has {length} bytes; the limit is {most}");
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    let stored = found.blocks().saturating_mul(512);
    if length > LONGEST_HOLE && stored < length / 64 {
        let why = format!("of its {length} bytes only {stored} are on the disk");
        return Err(Error::new(ErrorKind::InvalidData, why));
    }
    let mut bytes = Vec::new();
    let mut from_start: &File = file;
    from_start.rewind()?;
    // A file may grow meanwhile.
    from_start.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Saves `bytes` to a file for the next process; a reader sees all of them or none. Its folder is made. On failure (a
/// full disk, no permission, more than `most` bytes), the previous file stays.
pub fn keep(path: &Path, bytes: &[u8], most: u64) -> Result<()> {
    if bytes.len() as u64 > most {
        let why = format!("it has {} bytes; the limit is {most}", bytes.len());
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    path.parent().map_or(Ok(()), create_dir_all)?;
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let written = write(&temporary, bytes).and_then(|()| rename(&temporary, path));
    if written.is_err() {
        // It may not have been made.
        let _ = remove_file(&temporary);
    }
    written
}

/// As [`read`], of a text in UTF-8.
///
/// # Errors
/// As [`read`], or it is no such text.
pub fn read_text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(read(path, most)?).map_err(|e| {
        Error::new(ErrorKind::InvalidData, format!("it is not UTF-8 text: {}", e.utf8_error()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("of/tdtool/kept.json");
        keep(&path, b"[1]", 100).unwrap();
        // A failed save leaves the previous file, and nothing beside it.
        let long = keep(&path, &[b'7'; 101], 100).unwrap_err();
        assert_eq!(long.kind(), ErrorKind::FileTooLarge);
        assert!(keep(&path.join("below"), b"[2]", 100).is_err());
        std::fs::create_dir(path.with_file_name("folder")).unwrap();
        assert!(keep(&path.with_file_name("folder"), b"[3]", 100).is_err());
        assert_eq!(read(&path, 100).unwrap(), b"[1]");
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 2);
    }
}
