//! Runs the functions of the fuzz targets with a stable compiler, on seeds mutated at random, for as many seconds
//! as TDTOOL_FUZZ_SECONDS says (one where it says nothing).
//!
//! A failure prints its input; TDTOOL_FUZZ_SEED repeats a run.

use super::{blocks, branches, counts, parsers, programs, recordings, sessions, tables};
use crate::profile::made;
use crate::support::quiet::busy;
use crate::support::random::Random;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Pieces that mean something to some parser.
const PIECES: [&[u8]; 24] = [
    b"# LLVM-MCA-BEGIN a\n",
    b"# LLVM-MCA-END a\n",
    b".string \"",
    b"/*",
    b"\"",
    b",",
    b"\r\n",
    b"4801d8",
    b"hex,status,reason,cycles,low,high,unrolled,loop,pages\n",
    b"\xef\xbb\xbf",
    b"rax=0x",
    b"a.out:main+",
    b":401000..401008",
    b"\xbb\x6f\0\0\0\x64\x67\x90\x48\x01\xd8\xbb\xde\0\0\0\x64\x67\x90",
    b"PERFILE2",
    b" 0x40008d/0x400082/P/-/-/9 0x40008d/0x400082/M/-/-/65535//-",
    b"PERF_RECORD_MMAP2 11/12: [0x400000(0x98) @ 0 08:02 1 1]: r-xp /a\n",
    b"        000000000040008d insn: 7c f3  # PRED 9 cycles\n",
    b" branches: 40008d main+0x15 (/a) => 400082 main+0xa (/a)\n",
    b"I  00400082,2\n",
    b" L 1ffe,8\n",
    b"->",
    b"400082-40008d:18446744073709551615\n",
    b"{\"schema\":\"tdtool.block/2\",\"block\":{\"hex\":\"90\"},\"values\":",
];

/// One to eight changes: a byte, a word that sizes go wrong by, a piece put in, a part doubled,
/// left out, or the end cut off.
fn mutate(data: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.index(8) {
        let at = random.index(data.len() + 1);
        let end = (at + random.index(40)).min(data.len());
        match random.index(6) {
            0 if at < data.len() => data[at] = random.next() as u8,
            1 => {
                let words = [0, 1, 8, u64::MAX, u64::MAX - 7, 1 << random.index(64)];
                let word = words[random.index(words.len())].to_le_bytes();
                let size = (data.len() - at).min([1, 2, 4, 8][random.index(4)]);
                data[at..at + size].copy_from_slice(&word[..size]);
            }
            2 => drop(data.splice(at..at, PIECES[random.index(PIECES.len())].iter().copied())),
            3 => {
                let part = data[at..end].to_vec();
                drop(data.splice(at..at, part));
            }
            4 => drop(data.drain(at..end)),
            _ if random.one_in(4) => data.truncate(at),
            _ => {}
        }
    }
    data.truncate(1 << 16);
}

/// The number in a variable of the environment.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The committed inputs of a target, for both fuzzers. TDTOOL_FUZZ_CORPUS=write adds the seeds that are made here.
fn committed(target: &str, made: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    if std::env::var("TDTOOL_FUZZ_CORPUS").as_deref() == Ok("write") {
        fs::create_dir_all(&folder).unwrap();
        for (i, seed) in made.iter().enumerate() {
            fs::write(folder.join(format!("made-{i}")), seed).unwrap();
        }
    }
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let all: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(!all.is_empty() && all.iter().all(|seed| seed.len() <= 16 << 10), "small, and some");
    all
}

fn fuzz(what: &str, made: Vec<Vec<u8>>, feed: fn(&[u8])) {
    let _busy = busy();
    let mut corpus = committed(what, &made);
    corpus.extend(made);
    corpus.iter().for_each(|seed| feed(seed));
    let seed = number("TDTOOL_FUZZ_SEED", 0x9e37_79b9_7f4a_7c15);
    let end = Instant::now() + Duration::from_secs(number("TDTOOL_FUZZ_SECONDS", 1));
    let (mut random, seeds, mut inputs) = (Random(seed), corpus.len(), 0_u64);
    while Instant::now() < end {
        let mut data = corpus[random.index(corpus.len())].clone();
        mutate(&mut data, &mut random);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| feed(&data))) {
            eprintln!("{what}, seed {seed}, input {inputs}: {data:02x?}");
            resume_unwind(panic);
        }
        // Some go on from what they have become.
        if random.one_in(50) {
            match corpus.len() < seeds + 500 {
                true => corpus.push(data),
                false => {
                    let at = seeds + random.index(500);
                    corpus[at] = data;
                }
            }
        }
        inputs += 1;
    }
    eprintln!("{what}: {inputs} inputs, seed {seed}");
}

#[test]
fn block_inputs_for_a_while() {
    let program = include_bytes!("../fixtures/block/marked").to_vec();
    let object = include_bytes!("../fixtures/block/marked.o").to_vec();
    let pieces = PIECES.iter().map(|piece| piece.to_vec());
    fuzz("inputs", pieces.chain([program, object]).collect(), parsers::feed);
}

#[test]
fn recordings_for_a_while() {
    let records = made::records();
    let words = made::words(&[1, 2, 8, 16, 300]);
    let seeds = vec![made::file("x86_64", &records), made::stream(&records), words];
    fuzz("recordings", seeds, recordings::feed);
}

/// Each form of text, with the loop of `branches::PROGRAM`.
const TEXTS: [&[u8]; 5] = [
    b"a.out 11/12 1.5: 9 cycles:u: 400097 0x40008d/0x400082/P/-/-/9 0x40008d/0x400082/M/-/-/2\n",
    b"a.out 11 1.5: cycles:\n\tmain+4:\n\t0000000000400082\tinsn: ff c0\n\t000000000040008d\tinsn: 7c f3 # PRED 2 cycles\n\t0000000000400082\tinsn: ff c0\n",
    b"a.out 11 1.5: 1 branches: 40008d main+0x15 (/a) => 400082 main+0xa (/a)\na.out 11 1.6: 1 branches: 40008d main+0x15 (/a) => 0 [unknown] (/a)\n",
    b"I  00400082,2\n L 00402000,4\nI  00400084,6\nI  0040008a,3\nI  0040008d,2\nI  00400082,2\nI  00400084,6\nI  0040008a,3\nI  0040008d,2\nI  0040008f,5\n",
    b"2\n400078-40008d:1\n400082-40008d:7\n1\n40008d->400082:7\n",
];

#[test]
fn branches_for_a_while() {
    let counts = b"1\n82-8d:7\n1\n84:3\n1\n8d->82:7\n".to_vec();
    let records = made::records();
    let texts = TEXTS.into_iter().map(<[u8]>::to_vec);
    let seeds = texts.chain([counts, made::file("x86_64", &records), made::stream(&records)]);
    fuzz("branches", seeds.collect(), branches::feed);
}

#[test]
fn sessions_for_a_while() {
    fuzz("sessions", Vec::new(), sessions::feed);
}

#[test]
fn programs_for_a_while() {
    fuzz("programs", Vec::new(), programs::feed);
}

#[test]
fn tables_for_a_while() {
    fuzz("tables", Vec::new(), tables::feed);
}

#[test]
fn counts_for_a_while() {
    fuzz("counts", Vec::new(), counts::feed);
}

#[test]
fn blocks_for_a_while() {
    fuzz("blocks", Vec::new(), blocks::feed);
}
