//! Data built into the program, compressed (deflate): a fifth of its size, decompressed in less than a millisecond when
//! it is asked for.

use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use std::io::{Read as _, Result};

/// Built-in data as [`pack`] writes it.
#[derive(Debug, Clone, Copy)]
pub struct Packed(pub &'static [u8]);

impl Packed {
    /// The data itself.
    ///
    /// # Errors
    /// None in a sound build: the build itself has compressed it.
    pub fn bytes(self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        DeflateDecoder::new(self.0).read_to_end(&mut bytes).map(|_| bytes)
    }

    /// The data as text.
    ///
    /// # Errors
    /// As [`Packed::bytes`].
    pub fn text(self) -> Result<String> {
        let mut text = String::new();
        DeflateDecoder::new(self.0).read_to_string(&mut text).map(|_| text)
    }
}

/// Compresses data for embedding.
///
/// # Errors
/// None: it is written to memory.
pub fn pack(data: &[u8]) -> Result<Vec<u8>> {
    let mut packed = Vec::new();
    DeflateEncoder::new(data, Compression::best()).read_to_end(&mut packed).map(|_| packed)
}
