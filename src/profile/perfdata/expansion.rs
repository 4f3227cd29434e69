//! How far compressed records expand. linux-perf-data keeps whatever comes out of them, and a few
//! kilobytes of zstd can become gigabytes; so each is taken apart here first, into a buffer that is
//! thrown away, and nothing behind the limit is handed on.

use super::attribute::word;
use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Bytes that come out of each that goes in, at most; perf told a ratio of 6 when it recorded sort(1)
/// at 20,000 samples a second (`perf record -z`, version 6.1).
const MOST_TIMES: u64 = 200;
/// Bytes that may come out of however little.
const FREE: u64 = 64 << 20;
/// Bytes taken out at a time.
const PIECE: usize = 128 << 10;

/// What has gone into the one stream that the compressed records of a file are, and come out.
#[derive(Default)]
pub struct Expansion {
    context: Option<DCtx<'static>>,
    piece: Vec<u8>,
    taken: u64,
    given: u64,
    /// The stream is damaged: linux-perf-data comes upon the same, says so and reads no further.
    broken: bool,
}

impl Expansion {
    /// Takes the body of a COMPRESSED record, or if `sized` of a COMPRESSED2 record, which tells
    /// how much of it counts.
    ///
    /// # Errors
    /// It expands beyond the limit.
    pub fn take(&mut self, body: &[u8], sized: bool) -> Result<(), String> {
        let data = match sized {
            false => Some(body),
            true => {
                word(body, 0).and_then(|size| body.get(8..)?.get(..usize::try_from(size).ok()?))
            }
        };
        match (data, self.broken) {
            (Some(data), false) => self.expand(data),
            _ => {
                self.broken = true;
                Ok(())
            }
        }
    }

    fn expand(&mut self, data: &[u8]) -> Result<(), String> {
        self.taken += data.len() as u64;
        self.piece.resize(PIECE, 0);
        if self.context.is_none() {
            self.context = DCtx::try_create();
        }
        let Some(context) = &mut self.context else {
            return Err("a compressed record cannot be read: there is no memory".to_owned());
        };
        let mut input = InBuffer::around(data);
        loop {
            let mut output = OutBuffer::around(&mut self.piece[..]);
            if context.decompress_stream(&mut output, &mut input).is_err() {
                self.broken = true;
                return Ok(());
            }
            let given = output.pos();
            self.given += given as u64;
            if self.given > FREE + self.taken.saturating_mul(MOST_TIMES) {
                return Err(format!(
                    "{} compressed bytes expand to more than {} MiB, which perf's do not",
                    self.taken,
                    self.given >> 20
                ));
            }
            if given < PIECE && input.pos() == data.len() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zstd stream (RFC 8878) of `blocks` blocks that each repeat one byte 128 Ki times: magic,
    /// frame header without a size, window of 1 MiB, blocks of type RLE.
    fn repeated(blocks: usize) -> Vec<u8> {
        let header: u32 = 0x2_0000 << 3 | 1 << 1;
        let block = [&header.to_le_bytes()[..3], &[8]].concat();
        [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x50][..], &block.repeat(blocks)].concat()
    }

    #[test]
    fn kilobytes_that_become_gigabytes_are_refused() {
        let error = Expansion::default().take(&repeated(16_000), false).expect_err("2 GiB");
        assert!(error.contains("expand"), "{error}");
        // Little by little is as much.
        let mut expansion = Expansion::default();
        let stream = repeated(16_000);
        assert!(stream.chunks(400).any(|part| expansion.take(part, false).is_err()));
    }

    #[test]
    fn what_expands_within_the_limit_or_is_no_zstd_is_left_to_the_reader() {
        let data = repeated(100);
        Expansion::default().take(&data, false).expect("12 MiB");
        let sized = [&(data.len() as u64).to_le_bytes()[..], &data, &[0; 3]].concat();
        Expansion::default().take(&sized, true).expect("12 MiB");
        for nonsense in [&b"no zstd at all"[..], &[], &[0xff; 7]] {
            let mut expansion = Expansion::default();
            expansion.take(nonsense, false).expect("not its business");
            expansion.take(nonsense, true).expect("not its business");
        }
    }
}
