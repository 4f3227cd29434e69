//! Loads the tables and texts that are built into the program, in a form that needs no parsing, compressed
//! (deflate): a fifth of its size, decompressed in less than a millisecond when it is asked for.

use super::schema::{CoreKind, Signature};
use super::table::Table;
use super::texts::Text;
use crate::{Error, Result};
use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use std::fmt::Display;
use std::io::{self, Read as _};

/// Everything that is built in.
#[derive(Debug)]
pub struct Bundle {
    /// Every event table, by name.
    pub tables: &'static [Embedded],
    /// Event names as the tables write them, sorted, and the tables that have them: bit n is
    /// `tables[n]`.
    pub event_names: &'static [(&'static str, u64)],
    /// Plain names ([`plain_name`]) and the tables that have them.
    pub plain_names: &'static [(&'static str, u64)],
    /// Texts of nodes and metrics by `node.ID` and `info.ID`, sorted.
    pub texts: &'static [(&'static str, Text)],
    /// Files of latencies: name and compressed TOML.
    pub latencies: &'static [(&'static str, Packed)],
    /// Files of ports: name and compressed TOML.
    pub ports: &'static [(&'static str, Packed)],
}

/// An event table as it is embedded.
#[derive(Debug)]
pub struct Embedded {
    /// The name users type.
    pub name: &'static str,
    /// CPUID vendor string, or `any`.
    pub vendor: &'static str,
    /// Kind of core on hybrids.
    pub core: Option<CoreKind>,
    /// Name of the core PMU.
    pub pmu: &'static str,
    /// Processors that it is for.
    pub rules: &'static [Rule],
    /// CPUID signature of such a core, as [`Table::encode_signature`] writes it.
    pub signature: &'static [u8],
    /// The compiled table, as [`Table::encode`] writes it.
    pub data: Packed,
}

/// One processor family and its models.
#[derive(Debug)]
pub struct Rule {
    /// Display family.
    pub family: u32,
    /// Display models; empty: all.
    pub models: &'static [u32],
    /// Steppings; empty: all.
    pub steppings: &'static [u32],
}

/// An event's name without PMU, filters and modifiers, in lower case; `None` for what is no name.
pub fn plain_name(name: &str) -> Option<String> {
    let inner = name.split_once('/').map_or(name, |(_, rest)| rest);
    let end = inner.find(['/', ',', ':', '=']).unwrap_or(inner.len());
    let plain = inner[..end].trim().to_lowercase();
    (!plain.is_empty() && !plain.starts_with('#')).then_some(plain)
}

impl Embedded {
    /// CPUID signature of such a core.
    pub fn signature(&self) -> Option<Signature> {
        // A test decodes them all.
        postcard::from_bytes(self.signature).ok().flatten()
    }

    /// The table.
    ///
    /// # Errors
    /// None in a sound build: the data is written by the build itself, and a test decodes it all.
    pub fn table(&self) -> Result<Table> {
        let undecodable = |e: &dyn Display| {
            Error::failed(format!("the table {} cannot be decoded", self.name)).because(e)
        };
        let data = self.data.bytes().map_err(|e| undecodable(&e))?;
        postcard::from_bytes(&data).map_err(|e| undecodable(&e))
    }
}

impl Table {
    /// The signature alone, for embedding.
    pub fn encode_signature(&self) -> postcard::Result<Vec<u8>> {
        postcard::to_stdvec(&self.signature)
    }

    /// The compiled table in postcard's format, for embedding ([`pack`](super::pack)).
    ///
    /// # Errors
    /// None that a table could cause: the format holds whatever a table holds.
    pub fn encode(&self) -> postcard::Result<Vec<u8>> {
        postcard::to_stdvec(self)
    }
}

/// Built-in data as [`pack`] writes it.
#[derive(Debug, Clone, Copy)]
pub struct Packed(pub &'static [u8]);

impl Packed {
    /// The data itself.
    pub fn bytes(self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        DeflateDecoder::new(self.0).read_to_end(&mut bytes).map(|_| bytes)
    }

    /// The data as text.
    pub fn text(self) -> io::Result<String> {
        let mut text = String::new();
        DeflateDecoder::new(self.0).read_to_string(&mut text).map(|_| text)
    }
}

/// Compresses data for embedding.
///
/// # Errors
/// None: it is written to memory.
pub fn pack(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    DeflateEncoder::new(data, Compression::best()).read_to_end(&mut packed).map(|_| packed)
}
