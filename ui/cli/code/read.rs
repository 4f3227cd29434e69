//! Files and standard input, read whole up to a limit.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use tma::{Error, Result};

/// Most bytes of a program, and of a file of rows.
const LONGEST_FILE: usize = 2 << 30;

/// The content of the file at `path`, or of standard input if that is `-`, at most `most` bytes.
pub fn bytes(path: &Path, most: usize) -> Result<Vec<u8>> {
    let is_stream = path == Path::new("-");
    let name = if is_stream { "standard input".into() } else { path.display().to_string() };
    let failed = |e: std::io::Error| Error::failed(format!("cannot read {name}")).because(e);
    if !is_stream {
        return tma::files::read(path, most as u64).map_err(failed);
    }
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Error::usage("`-` reads standard input, which is the terminal")
            .hint("pipe the input in, or redirect it from a file"));
    }
    let mut data = Vec::new();
    stdin.lock().take(most as u64 + 1).read_to_end(&mut data).map_err(failed)?;
    match data.len() > most {
        true => Err(Error::failed(format!("{name} is too long"))
            .because(format!("the limit is {most} bytes"))),
        false => Ok(data),
    }
}

/// The content of a program or a file of rows.
pub fn file(path: &Path) -> Result<Vec<u8>> {
    bytes(path, LONGEST_FILE)
}

/// The content of a text file, at most `most` bytes.
pub fn text(path: &Path, most: usize) -> Result<String> {
    String::from_utf8(bytes(path, most)?).map_err(|e| {
        Error::failed(format!("cannot read {}", path.display()))
            .because(format!("it is not UTF-8 text: {}", e.utf8_error()))
    })
}

/// The content of a file of rows whose results go to `output`.
pub fn rows(path: &Path, output: &Path) -> Result<Vec<u8>> {
    let same = |a: &Path, b: &Path| {
        std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
    };
    if same(path, output) {
        return Err(Error::usage(format!("{} would overwrite its own input", output.display()))
            .hint("give -o another file"));
    }
    file(path)
}
