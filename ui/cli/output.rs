//! Standard output.

use std::io::{ErrorKind, Write as _};
use tma::{Error, Result};

/// Writes `text`, without control characters that names brought in; a reader that went away
/// (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    print_bytes(tma::text::lines(text).as_bytes())
}

/// As [`print()`].
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::failed("cannot write to standard output").because(e))
        }
        _ => Ok(()),
    }
}
