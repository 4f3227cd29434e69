//! Recordings that are not there: which one, and what a user may have meant.

use report::format;
use std::path::{Path, PathBuf};
use tma::{Error, Result, error};

/// Refuses files that do not exist. `make` is how such a recording is made.
pub fn present(files: &[PathBuf], make: &str) -> Result<()> {
    let is_absent = |path: &&PathBuf| path.as_os_str() != "-" && is_absent(path);
    let Some(path) = files.iter().find(is_absent) else { return Ok(()) };
    let remedy = match near(path) {
        Some(near) => format!("did you mean {near}? {make}"),
        None => make.to_owned(),
    };
    let error = Error::failed(format!("cannot read {}", path.display()));
    Err(error.because("there is no such file").hint(remedy))
}

/// Whether nothing has this name, not even what may not be looked at.
fn is_absent(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}

/// The file of the same folder whose name is nearly this one, as it is to be written.
fn near(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let all = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.flatten();
    let names: Vec<String> = all.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let near = error::nearest(name, names.iter().map(String::as_str))?;
    let whole = folder.map_or_else(|| near.into(), |folder| folder.join(near));
    Some(format::command(&[whole.display().to_string()]))
}
