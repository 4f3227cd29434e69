//! The layout of a session file: header, chunk headers, checksums.

/// First bytes of every session file. The line ends and the control-Z detect transfers in text
/// mode.
pub const MAGIC: [u8; 8] = *b"\x89TDS\r\n\x1a\n";
/// Version of the format this code writes.
pub const VERSION: u32 = 1;
/// Bytes of the file header: magic, version, checksum.
pub const FILE_HEADER: usize = 16;
/// Bytes of a chunk header: kind, length, checksum of the payload, checksum of the header.
pub const CHUNK_HEADER: usize = 20;
/// Maximum length of a payload.
pub const LONGEST_CHUNK: u64 = 1 << 30;

/// Maximum length of a payload of JSON.
pub const LONGEST_TEXT: u64 = 32 << 20;

/// Checksum of headers and payloads: CRC-32 (IEEE 802.3, as in PNG and zip).
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
