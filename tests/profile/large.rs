//! Recordings of many records: their samples are summed while they are read, none are kept.

use super::made;
use crate::support::files::Folder;
use crate::support::run::{Ran, TDTOOL, program, run};
use std::fs;

/// Records of each file. Decoded they took 134 bytes each, or more.
const RECORDS: u64 = 1 << 21;

/// `tdtool COMMAND FILE` in 200 MB of address space, of which the program alone takes more than half.
fn in_little_memory(command: &str, file: &str) -> Ran {
    within(200_000, command, file)
}

/// `tdtool COMMAND FILE` in so many kilobytes of address space.
pub fn within(kilobytes: u32, command: &str, file: &str) -> Ran {
    let script = format!("ulimit -v {kilobytes}; exec {TDTOOL} {command} {file}");
    run(program("sh").args(["-c", &script]))
}

#[test]
fn samples_are_not_kept() {
    let folder = Folder::new();
    let file = folder.file("many.data");
    let samples: Vec<u8> =
        (0..RECORDS / 4).flat_map(|time| made::sample(101, 100 + time)).collect();
    fs::write(&file, made::file("x86_64", &[made::records(), samples].concat())).unwrap();
    let samples = RECORDS / 4 + 2;
    let ran = in_little_memory("report", &file).succeeded();
    assert!(ran.stdout.contains(&format!("{samples} samples of loads")), "{}", ran.stdout);
    // Each has a branch and an address, too.
    let ran = in_little_memory("branches", &file).succeeded();
    assert!(ran.stdout.contains(&format!("{samples} branches in {samples}")), "{}", ran.stdout);
    let ran = in_little_memory("prefetch", &file).succeeded();
    assert!(ran.stdout.contains(&format!("{samples} branch stacks")), "{}", ran.stdout);
}

/// Without any field: only a header of 8 bytes.
#[test]
fn small_records_do_not_grow() {
    let folder = Folder::new();
    let file = folder.file("small.data");
    let mut bytes = made::stream(&made::record(9, 2, &[]).repeat(RECORDS as usize));
    // `sample_type` of the only event: after PERFILE2, the size 16, the record's header, and three words.
    let event = 16 + 8;
    bytes[event + 24..event + 32].fill(0);
    let second = event + 128 + 8;
    bytes.drain(second..second + 8 + 128 + 8);
    fs::write(&file, bytes).unwrap();
    let ran = in_little_memory("report", &file).succeeded();
    assert!(ran.stdout.contains(&format!("{RECORDS} samples of")), "{}", ran.stdout);
}
