//! Files that users and recordings name: only regular ones are read, and only up to a limit.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Most bytes of a program, a debug file or a file of rows that is read as a whole.
pub const LONGEST_PROGRAM: u64 = 2 << 30;

/// Most bytes of a text that people write or programs report: a table, a document, rows of counts.
pub const LONGEST_TEXT: u64 = 256 << 20;

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
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
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

/// The bytes of a regular file, at most `most`.
///
/// # Errors
/// As [`open`], or it is longer.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    if length > most {
        let why = format!("it has {length} bytes; the limit is {most}");
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    let mut bytes = Vec::new();
    // A file may grow meanwhile.
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
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
