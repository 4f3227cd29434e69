//! Standard output, and the files of `--output`.

use std::io::{ErrorKind, Write as _};
use std::path::Path;
use tma::{Error, Result};

/// Writes `text`; a reader that went away (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
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

/// Writes to the file of `--output`, else (or to `-`) to standard output.
pub fn write_or_print(path: Option<&Path>, bytes: &[u8]) -> Result<()> {
    match path.filter(|path| path.as_os_str() != "-") {
        Some(path) => write(path, bytes, "--output"),
        None => print_bytes(bytes),
    }
}

/// Writes to the file of an option.
pub fn write(path: &Path, bytes: &[u8], option: &str) -> Result<()> {
    std::fs::write(path, bytes).map_err(|e| {
        Error::failed(format!("cannot write {}", path.display()))
            .because(e)
            .hint(format!("choose another place with {option}"))
    })
}
