//! Files that are whole or not there: written beside their place, then renamed.

use std::ffi::OsString;
use std::io::{Result, Write as _};
use std::path::Path;

/// Writes a file; whoever reads it meanwhile sees the old or the new one. What is no plain file (`/dev/stdout`, a pipe)
/// is written directly.
///
/// # Errors
/// Those of the file system; the file is then as it was.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    // /dev/stdout may be a plain file that others have open.
    let is_open = ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    if is_open || std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return std::fs::write(path, text);
    }
    let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut beside = OsString::from(place.as_os_str());
    beside.push(format!(".{}", std::process::id()));
    let write = || {
        let mut file = std::fs::File::create_new(&beside)?;
        if let Ok(about) = std::fs::metadata(&place) {
            file.set_permissions(about.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        std::fs::rename(&beside, &place)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("plan.json");
        replace(&at, "old").unwrap();
        replace(&at, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&at).unwrap(), "new");
        // Through a link, as a plain write would.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&at, &link).unwrap();
        replace(&link, "again").unwrap();
        assert_eq!(std::fs::read_to_string(&at).unwrap(), "again");
        assert!(replace(&folder.path().join("absent/plan.json"), "").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside");
    }
}
