//! The program that executes instructions, and what it answers (execute.c).

use crate::support::child::{Limited as _, Running};
use crate::support::run::program;
use crate::support::tools::build;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

/// General-purpose registers, flags, masks and vectors, in the order of encodings.
#[derive(Clone)]
pub struct State {
    pub gpr: [u64; 16],
    pub flags: u64,
    pub masks: [u64; 8],
    pub vectors: [[u64; 8]; 32],
}

/// What differs from the run of the base state.
#[derive(Clone, Copy, Default)]
pub struct Change {
    /// By number of place; of vectors the low 16 bytes.
    pub places: u64,
    /// Vectors above their low 16 bytes.
    pub upper: u32,
    /// Bytes that it stored.
    pub memory: bool,
    /// It raised an exception.
    pub failed: bool,
}

/// How one instruction went.
pub struct Answer {
    /// 0, or why it did not run through.
    pub status: u64,
    pub out: State,
    /// With one place of the other state: by its number, vectors' upper parts from 64 on.
    pub changes: Vec<Change>,
    /// Addresses of bytes that it stored.
    pub stores: Vec<u64>,
}

pub const OUTSIDE: usize = 60;
pub const INSIDE: usize = 61;
pub const UPPER: usize = 64;
const FLIPS: usize = 96;
const MOST_RANGES: usize = 64;
const MOST_STORES: usize = 512;
const WORDS: usize = 16 + 1 + 8 + 32 * 8;

pub struct Runner {
    child: Running,
}

impl Runner {
    /// Compiles it; why it cannot be, if so.
    pub fn new(folder: &Path) -> Result<Self, String> {
        if !std::is_x86_feature_detected!("avx512bw") {
            return Err("this processor has no AVX-512".to_owned());
        }
        let flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-fPIE", "-pie", "-mavx512f"];
        let built = build(folder, "cc", include_str!("execute.c"), &flags, "execute");
        let executable = built.ok_or("no C compiler")?;
        let mut command = program(executable);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).start_limited().unwrap();
        Ok(Self { child })
    }

    /// Runs `code` from `base`, and again with each place of `other`.
    pub fn ask(
        &mut self,
        code: &[u8],
        base: &State,
        other: &State,
        loads: &[(u64, u64)],
    ) -> Answer {
        let mut words = vec![code.len() as u64, loads.len() as u64];
        let mut bytes = [0; 16];
        bytes[..code.len()].copy_from_slice(code);
        words.extend(bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())));
        for state in [base, other] {
            words.extend(state.gpr);
            words.push(state.flags);
            words.extend(state.masks);
            words.extend(state.vectors.as_flattened());
        }
        for at in 0..MOST_RANGES {
            let (start, length) = loads.get(at).copied().unwrap_or_default();
            words.extend([start, length]);
        }
        let sent: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.child.stdin.as_mut().unwrap().write_all(&sent).unwrap();
        self.answer()
    }

    fn answer(&mut self) -> Answer {
        let mut got = vec![0; 8 * (2 + WORDS + 2 * FLIPS + 2 * MOST_STORES)];
        self.child.stdout.as_mut().unwrap().read_exact(&mut got).unwrap();
        let words: Vec<u64> =
            got.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect();
        let (head, rest) = words.split_at(2);
        let (out, rest) = rest.split_at(WORDS);
        let (changes, stores) = rest.split_at(2 * FLIPS);
        let change = |pair: &[u64]| Change {
            places: pair[0],
            upper: pair[1] as u32,
            memory: pair[1] >> 32 & 0xffff != 0,
            failed: pair[1] >> 48 != 0,
        };
        Answer {
            status: head[0],
            out: State {
                gpr: out[..16].try_into().unwrap(),
                flags: out[16],
                masks: out[17..25].try_into().unwrap(),
                vectors: out[25..].as_chunks().0.try_into().unwrap(),
            },
            changes: changes.chunks(2).map(change).collect(),
            stores: stores.chunks(2).take(head[1] as usize).map(|pair| pair[0]).collect(),
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
