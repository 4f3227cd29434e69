//! Recorded counts of other tools (CSV, JSON, toplev), documents read back and evidence of estimates, fed with any bytes: shared by the
//! fuzz target and by the ordinary tests.

use profile::counts::{Options, best_tables, counts};
use std::sync::LazyLock;
use tma::tables::Library;

static LIBRARY: LazyLock<Library> = LazyLock::new(engine::library);

/// Feeds `data` as a file.
///
/// # Panics
/// More comes out than there is, or an error says nothing.
pub fn feed(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("counts");
    std::fs::write(&path, data).expect("a file");
    match profile::counts::read(std::slice::from_ref(&path)) {
        Ok(recording) => {
            let rows: usize = recording.blocks.iter().map(|block| block.rows.len()).sum();
            assert!(rows <= data.len());
            for found in best_tables(&recording, &LIBRARY).iter().take(2) {
                let Ok(table) = LIBRARY.load(&found.name) else { continue };
                let _ = counts(&recording, &table, Options::default());
            }
        }
        Err(error) => assert!(!error.what().is_empty()),
    }
    if let Err(error) = report::documents::report_file::read(&path) {
        assert!(error.cause().is_some(), "{error:?}");
    }
    let evidence = report::documents::evidence::read(&path);
    if let Err(error) = evidence.and_then(|found| engine::estimate::replay(found, &LIBRARY)) {
        assert!(!error.what().is_empty(), "{error:?}");
    }
}
