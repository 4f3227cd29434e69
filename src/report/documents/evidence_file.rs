//! Evidence in files: compact JSON, compressed (gzip) where the name ends in `.gz`.

use super::evidence::Evidence;
use crate::files::write_whole;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use tma::{Error, Result};

/// Most bytes of a file's text.
const LONGEST: u64 = 64 << 20;

/// Whether a file that begins in this way may be evidence.
pub fn recognise(start: &[u8]) -> bool {
    let text: Vec<u8> = start.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    text.starts_with(b"{\"schema\":\"tdtool.evidence/")
}

/// Reads a file.
///
/// # Errors
/// It cannot be read, is too long, or is something else.
pub fn read(path: &Path) -> Result<Evidence> {
    let unreadable = |cause: &dyn Display| {
        Error::failed(format!("cannot read the evidence {}", path.display()))
            .because(cause)
            .hint("`tdtool report --estimate --evidence FILE -- COMMAND` writes it")
    };
    let text = profile::kept::open(path).and_then(|file| tma::files::read_open(&file, LONGEST));
    // Through a value, as reports are read: the reader of their rows is generated once.
    let value = serde_json::from_slice(&text.map_err(|e| unreadable(&e))?);
    value.and_then(serde_json::from_value).map_err(|e| unreadable(&e))
}

/// Writes it, whole or not at all.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, evidence: &Evidence) -> Result<()> {
    let failed = |cause: &dyn Display| {
        Error::failed(format!("cannot write the evidence to {}", path.display())).because(cause)
    };
    let text = serde_json::to_vec(evidence).map_err(|e| failed(&e))?;
    let is_packed = path.extension().is_some_and(|end| end == "gz");
    let bytes = match is_packed {
        true => packed(&text).map_err(|e| failed(&e))?,
        false => text,
    };
    write_whole(path, &bytes, &[], "--evidence")
}

fn packed(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::evidence::SCHEMA;
    use std::io::Read as _;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let evidence = Evidence { schema: SCHEMA.to_owned(), cycles: 0.1, ..Evidence::default() };
        for name in ["a.json", "a.json.gz"] {
            let path = folder.path().join(name);
            write(&path, &evidence).unwrap();
            let mut start = Vec::new();
            profile::kept::open(&path).unwrap().read_to_end(&mut start).unwrap();
            assert!(recognise(&start), "{name}");
            let found = read(&path).unwrap();
            assert_eq!((found.schema.as_str(), found.cycles), (SCHEMA, 0.1));
        }
    }

    /// 64 MiB of spaces are 64 KiB packed.
    #[test]
    fn a_file_that_grows_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.gz");
        std::fs::write(&path, packed(&vec![b' '; (64 << 20) + 1]).unwrap()).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.cause().unwrap().contains("the limit is"), "{error:?}");
    }
}
