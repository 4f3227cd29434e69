//! Reads files and standard streams whole, up to a limit, and writes them; also the files of `--output`.

use super::options::Invalid;
use crate::terminal;
use report::files::write_whole;
use report::render::width::Page;
use std::io::{ErrorKind, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use tma::shell::quoted;
use tma::{Error, Result};

/// Most bytes of a program, and of a file of rows.
const LONGEST_FILE: usize = 2 << 30;

/// The content of the file at `path`, or of standard input if that is `-`, at most `most` bytes.
pub fn read_bytes(path: &Path, most: usize) -> Result<Vec<u8>> {
    let is_stream = path == Path::new("-");
    let name = tma::files::name(path);
    let failed = |e: std::io::Error| tma::error::unreadable(path, &e);
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
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    read_bytes(path, LONGEST_FILE)
}

/// The content of a text file, at most `most` bytes.
pub fn read_text(path: &Path, most: usize) -> Result<String> {
    String::from_utf8(read_bytes(path, most)?).map_err(|e| {
        let failed = Error::failed(format!("cannot read {}", tma::files::name(path)));
        match e.as_bytes().starts_with(b"\x1f\x8b") {
            true => failed
                .because("it is compressed (gzip)")
                .hint(format!("unpack it first: `{}`", quoted(&[Path::new("gunzip"), path]))),
            false => failed
                .because(format!("it is not UTF-8 text: {}", e.utf8_error()))
                .hint("give a text file"),
        }
    })
}

/// The content of a file of rows whose results go to `output`.
pub fn read_rows(path: &Path, output: &Path) -> Result<Vec<u8>> {
    let same = |a: &Path, b: &Path| {
        std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
    };
    if same(path, output) {
        return Err(Error::usage(format!("{} would overwrite its own input", output.display()))
            .hint("give -o another file"));
    }
    read_file(path)
}

/// The page of standard output, or of the file of `--output`.
pub fn page(path: Option<&Path>) -> Page {
    let is_file = path.is_some_and(|path| path.as_os_str() != "-");
    Page::of(terminal::columns(&std::io::stdout()).filter(|_| !is_file))
}

/// The page of standard error.
pub fn error_page() -> Page {
    Page::of(terminal::columns(&std::io::stderr()))
}

/// As [`print()`], of a text whose lines become no wider than the terminal.
pub fn print_text(text: String) -> Result<()> {
    print(&page(None).fitted(text))
}

/// Refuses `--output` without `--batch`: one block's result is printed.
pub fn rows_have_a_batch(has_batch: bool, output: Option<&Path>) -> Result<()> {
    match output.filter(|_| !has_batch) {
        None => Ok(()),
        Some(path) => Err(Error::usage("--output takes the rows of a --batch")
            .hint(format!("> {} keeps what is printed", path.display()))),
    }
}

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

/// A file for a flame graph.
pub fn picture(text: &str) -> std::result::Result<PathBuf, Invalid> {
    let path = PathBuf::from(text);
    let known = |e: &std::ffi::OsStr| ["svg", "html"].iter().any(|k| e.eq_ignore_ascii_case(k));
    match path.extension().is_some_and(known) {
        true => Ok(path),
        false => Err(Invalid::Picture),
    }
}
