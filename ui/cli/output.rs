//! Standard output, and the files of `--output`.

use engine::files::write_whole;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// Writes `text`, without control characters that names brought in; a reader that went away
/// (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    print_bytes(tma::text::lines(text).as_bytes())
}

/// As [`print()`].
fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::failed("cannot write to standard output").because(e))
        }
        _ => Ok(()),
    }
}

/// Writes to the file of `--output`, which is none of the `inputs`, else (or to `-`) to standard output.
pub fn write_or_print(path: Option<&Path>, text: &str, inputs: &[PathBuf]) -> Result<()> {
    match path.filter(|path| path.as_os_str() != "-") {
        Some(path) => write_whole(path, text.as_bytes(), inputs, "--output"),
        None => print(text),
    }
}

/// As [`write_or_print`], of what is no text.
pub fn write_or_print_bytes(path: Option<&Path>, bytes: &[u8], inputs: &[PathBuf]) -> Result<()> {
    match path.filter(|path| path.as_os_str() != "-") {
        Some(path) => write_whole(path, bytes, inputs, "--output"),
        None => print_bytes(bytes),
    }
}
