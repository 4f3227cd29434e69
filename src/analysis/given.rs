//! Real values for a dependency analysis to start with: from a file, or from the registers that a
//! recording has sampled.

use super::recording;
use crate::block::Init;
use crate::deps::memory::Given;
use crate::profile::record::Record;
use crate::profile::sample::Sample;
use crate::profile::space::Spaces;
use crate::profile::symbols::Search;
use crate::{Error, Result};
use std::path::Path;

/// Longest file of values, in bytes.
pub const LONGEST: usize = 16 << 20;
/// Most words of memory that are taken from a file.
const MOST_WORDS: usize = 1 << 20;
/// Most samples that are taken from a recording, spread over it.
const MOST_SAMPLES: usize = 64;

/// Reads lines `rax=0x1`, `[0x1000]=0x2` (eight bytes each) and `mem=0` (all other memory). What
/// stands behind `#` is a comment.
///
/// # Errors
/// A line that says something else; too many of them.
pub fn parse(text: &str) -> Result<Given> {
    let mut given = Given::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        read(line, &mut given).map_err(|e| {
            let place = Error::usage(format!("line {}: {e}", number + 1));
            place.hint(e.remedy().unwrap_or("write rax=0x1, [0x1000]=0x2 or mem=0").to_owned())
        })?;
        if given.memory.len() > MOST_WORDS {
            return Err(Error::failed("too many values of memory")
                .because(format!("at most {MOST_WORDS} words are taken")));
        }
    }
    Ok(given)
}

fn read(line: &str, given: &mut Given) -> Result<()> {
    let Some((address, value)) = line.strip_prefix('[').and_then(|l| l.split_once("]=")) else {
        let (place, value) = Init::parse(line)?;
        return set(given, place, value);
    };
    let number = |text: &str| Init::parse(&format!("mem={}", text.trim())).map(|(_, n)| n);
    given.memory.push((number(address)?, number(value)?));
    Ok(())
}

/// Puts an initial value there.
///
/// # Errors
/// Vector registers: their values are no addresses.
pub fn set(given: &mut Given, place: Init, value: u64) -> Result<()> {
    match place {
        Init::Register(number) => given.registers[usize::from(number) & 15] = Some(value),
        Init::Memory => given.fill = Some(value),
        Init::Vector => {
            return Err(Error::usage("vector registers are not given values here")
                .hint("general-purpose registers, [ADDRESS] and mem are"));
        }
    }
    Ok(())
}

/// `enum perf_event_x86_regs` (arch/x86/include/uapi/asm/perf_regs.h) → number in encodings.
const NUMBERS: [(u8, usize); 16] = [
    (0, 0),
    (1, 3),
    (2, 1),
    (3, 2),
    (4, 6),
    (5, 7),
    (6, 5),
    (7, 4),
    (16, 8),
    (17, 9),
    (18, 10),
    (19, 11),
    (20, 12),
    (21, 13),
    (22, 14),
    (23, 15),
];

/// The user registers of the samples of the recording at `path` that were taken at `address`
/// (p_vaddr) of `file`.
///
/// # Errors
/// No recording, none with registers, or no sample there: registers sampled elsewhere are not what
/// the region starts with.
pub fn snapshot(path: &Path, file: Option<&Path>, address: u64) -> Result<Vec<Given>> {
    let failed = || Error::failed(format!("no registers to start with in {}", path.display()));
    let recording = recording::open(path)?.ok_or_else(|| {
        failed().because("it has no samples").hint("tdtool record --registers -o FILE -- COMMAND")
    })?;
    let mut spaces = Spaces::new(Search::default(), &recording.build_ids);
    let (mut found, mut registers) = (Vec::new(), 0usize);
    for record in &recording.records {
        let Record::Sample { sample, .. } = record else {
            spaces.apply(record);
            continue;
        };
        registers += usize::from(sample.registers.is_some());
        if is_at(sample, &mut spaces, file, address) {
            found.extend(values(sample));
        }
    }
    match (registers, found.is_empty()) {
        (0, _) => {
            Err(failed().because("its samples have no registers").hint("record with --registers"))
        }
        (_, true) => Err(failed()
            .because(format!("none of {registers} samples with registers is at {address:#x}"))
            .hint("start the path at an instruction that was sampled; `report` lists them")),
        _ => {
            let step = found.len().div_ceil(MOST_SAMPLES);
            Ok(found.into_iter().step_by(step).collect())
        }
    }
}

/// Whether a sample was taken at `address` of `file`, of whichever file if none is named.
fn is_at(sample: &Sample, spaces: &mut Spaces, file: Option<&Path>, address: u64) -> bool {
    let (Some(pid), Some(ip)) = (sample.pid, sample.ip) else { return false };
    let Some(place) = spaces.place(pid, ip, sample.user) else { return false };
    if place.address != address {
        return false;
    }
    let Some(file) = file else { return true };
    let module = spaces.modules.all.get(place.module);
    module.is_some_and(|m| {
        let same = |a: &Path, b: &Path| a.canonicalize().ok().zip(b.canonicalize().ok());
        let path = Path::new(&m.path);
        same(path, file).is_some_and(|(a, b)| a == b) || path.file_name() == file.file_name()
    })
}

fn values(sample: &Sample) -> Option<Given> {
    let registers = sample.registers.as_ref().filter(|r| r.wide)?;
    let mut given = Given::default();
    for (number, value) in &registers.values {
        if let Some((_, register)) = NUMBERS.iter().find(|(n, _)| n == number) {
            given.registers[*register] = Some(*value);
        }
    }
    Some(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_and_memory_are_read_as_people_write_them() {
        let given = parse("# at the loop\nrax=0x10\nr15 = -1\n\n[0x1000]=0xff # spilled\nmem=0\n");
        let given = given.unwrap();
        assert_eq!((given.registers[0], given.registers[15]), (Some(16), Some(u64::MAX)));
        assert_eq!((given.memory, given.fill), (vec![(0x1000, 0xff)], Some(0)));
    }

    #[test]
    fn what_makes_no_sense_is_told_with_its_line() {
        for text in ["rax=1\neax=2", "rax=1\n[0x]=1", "\nvec=1", "\n[1=2"] {
            let error = parse(text).unwrap_err();
            assert!(error.what().contains("line 2"), "{text}: {error}");
            assert!(error.remedy().is_some(), "{text}");
        }
    }
}
