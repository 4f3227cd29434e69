//! Reads the fields of a record one after the other, never past its end.

use std::fmt;

/// Why a record cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Field or record, by its name in linux/perf_event.h.
    pub field: &'static str,
    /// The defect, in words.
    pub why: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.why)
    }
}

/// The part of a body that is not read yet.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the start of a body.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// Bytes left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: u64, field: &'static str) -> Result<&'a [u8], Malformed> {
        let parts = usize::try_from(count).ok().and_then(|n| self.rest.split_at_checked(n));
        let (taken, rest) = parts.ok_or_else(|| self.missing(count, field))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next 8 bytes.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        let (word, rest) = self.rest.split_first_chunk().ok_or_else(|| self.missing(8, field))?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*word))
    }

    /// The next 4 bytes.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        let (word, rest) = self.rest.split_first_chunk().ok_or_else(|| self.missing(4, field))?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*word))
    }

    /// The next `count` items of `N` words each; all of them are known to be there when this
    /// returns, so that the caller may allocate.
    pub fn words<const N: usize>(
        &mut self,
        count: u64,
        field: &'static str,
    ) -> Result<impl ExactSizeIterator<Item = [u64; N]> + use<'a, N>, Malformed> {
        let bytes = self.bytes(count.saturating_mul(8 * N as u64), field)?;
        Ok(bytes.chunks_exact(8 * N).map(|item| {
            let mut words = [0; N];
            for (word, bytes) in words.iter_mut().zip(item.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            words
        }))
    }

    fn missing(&self, count: u64, field: &'static str) -> Malformed {
        let why = format!("takes {count} bytes, {} are left", self.rest.len());
        Malformed { field, why }
    }
}
