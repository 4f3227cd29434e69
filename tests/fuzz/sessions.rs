//! Sessions of `tdtool record`, fed with any bytes: shared by the fuzz target and by the ordinary tests.

use profile::session::{CHUNK_HEADER, FILE_HEADER, MAGIC, VERSION, load_from, recording_from};

/// Feeds `data` as it is, and with lengths and checksums put right: few changes would get past them.
///
/// # Panics
/// More comes out than there is, or an error says nothing.
pub fn feed(data: &[u8]) {
    read(data);
    read(&repaired(data));
}

/// A session with the chunks of `data`, as far as it is one.
fn repaired(data: &[u8]) -> Vec<u8> {
    let mut all = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
    all.extend(crc32fast::hash(&all).to_le_bytes());
    let mut rest = data.get(FILE_HEADER..).unwrap_or(data);
    while let Some((header, behind)) = rest.split_at_checked(CHUNK_HEADER) {
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let (payload, next) = behind.split_at(length.min(behind.len()));
        let mut chunk = header[..4].to_vec();
        chunk.extend((payload.len() as u64).to_le_bytes());
        chunk.extend(crc32fast::hash(payload).to_le_bytes());
        chunk.extend(crc32fast::hash(&chunk).to_le_bytes());
        all.extend(chunk);
        all.extend(payload);
        rest = next;
    }
    all
}

fn read(data: &[u8]) {
    match load_from(data, "a session") {
        Ok(session) => assert!(session.counts.len() + session.tables.len() <= data.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match recording_from(data, "a session") {
        Ok(recording) => {
            // Compressed chunks hold more, but no more than their limit.
            assert!(recording.records.len() <= 1 << 24);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
