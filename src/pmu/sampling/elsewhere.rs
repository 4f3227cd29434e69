//! Files that their paths do not lead to from here, held open until the end of a recording.

use super::mapped::is_here;
use super::output::ElsewhereFile;
use std::fs::File;
use std::sync::Arc;

/// Most of them: each is an open file.
const MOST: usize = 64;

/// Adds a file that was mapped at `path`, unless the path leads to it, or there are enough.
pub(super) fn add(all: &mut Vec<ElsewhereFile>, path: &str, file: File, build_id: &[u8]) {
    let is_new = all.len() < MOST && all.iter().all(|known| known.build_id != build_id);
    if is_new && !is_here(path, &file) {
        all.push(ElsewhereFile { build_id: build_id.to_vec(), file: Arc::new(file) });
    }
}
