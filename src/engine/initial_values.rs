//! Real values for a dependency analysis to start with: from a file, or from the registers that a
//! recording has sampled.

use crate::hot;
use bench::Init;
use isa::deps::memory::InitialValues;
use isa::program::function_around;
use profile::address_space::AddressSpaces;
use profile::files::SearchPaths;
use profile::record::Record;
use profile::sample::Sample;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use tma::files::LONGEST_PROGRAM;
use tma::{Error, Result};

/// Longest file of values, in bytes.
pub const LONGEST: usize = 16 << 20;
/// Most words of memory that are taken from a file.
const MOST_WORDS: usize = 1 << 20;
/// Most samples that are taken from a recording, spread over it.
const MOST_SAMPLES: usize = 64;

/// Reads lines `rax=0x1`, `[0x1000]=0x2` (eight bytes each) and `mem=0` (all other memory). Text
/// after `#` is a comment.
///
/// # Errors
/// A line of another form; too many values.
pub fn parse(text: &str) -> Result<InitialValues> {
    let mut given = InitialValues::default();
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
            return Err(Error::failed("too many memory values")
                .because(format!("the limit is {MOST_WORDS} words")));
        }
    }
    Ok(given)
}

fn read(line: &str, given: &mut InitialValues) -> Result<()> {
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
pub fn set(given: &mut InitialValues, place: Init, value: u64) -> Result<()> {
    match place {
        Init::Register(number) => given.registers[usize::from(number) & 15] = Some(value),
        Init::Memory => given.fill = Some(value),
        Init::Vector => {
            return Err(Error::usage("vector registers cannot be initialised here")
                .hint("only general-purpose registers, [ADDRESS] and mem can"));
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

/// The user registers of the samples of the recording at `path` that were taken at the start of
/// `range` (p_vaddr) of `file`.
///
/// # Errors
/// No recording, none with registers, or no sample there: registers sampled elsewhere are not what
/// the region starts with. The error names the places in its function that have some.
pub fn snapshot(
    path: &Path,
    file: Option<&Path>,
    range: &Range<u64>,
) -> Result<Vec<InitialValues>> {
    let failed = || Error::failed(format!("no initial registers in {}", path.display()));
    let recording = hot::stream(path, false)?.ok_or_else(|| {
        failed().because("it has no samples").hint("`tdtool record --registers -o FILE -- COMMAND`")
    })?;
    let mut spaces = AddressSpaces::of(&recording.about, SearchPaths::default());
    let (mut found, mut registers) = (Vec::new(), 0usize);
    let (mut sampled, mut same) = (BTreeMap::<u64, usize>::new(), HashMap::new());
    recording.records.each(&mut |record| {
        let Record::Sample { sample, .. } = &record else {
            spaces.apply(&record);
            return;
        };
        spaces.advance(sample.time);
        registers += usize::from(sample.registers.is_some());
        let Some(address) = address(sample, &mut spaces, file, &mut same) else { return };
        if address == range.start {
            found.extend(values(sample));
        }
        if sample.registers.is_some() {
            *sampled.entry(address).or_default() += 1;
        }
    })?;
    match (registers, found.is_empty()) {
        (0, _) => {
            Err(failed().because("its samples have no registers").hint("record with --registers"))
        }
        (_, true) => {
            let (cause, hint) = Nearest::of(&sampled, file, range).told(registers);
            Err(failed().because(cause).hint(hint))
        }
        _ => {
            let step = found.len().div_ceil(MOST_SAMPLES);
            Ok(found.into_iter().step_by(step).collect())
        }
    }
}

/// The address in `file` (in whichever file if none is named) at which a sample was taken; `same`
/// keeps which modules are that file.
fn address(
    sample: &Sample,
    spaces: &mut AddressSpaces,
    file: Option<&Path>,
    same: &mut HashMap<usize, bool>,
) -> Option<u64> {
    let place = spaces.resolve(sample.pid?, sample.ip?, sample.user)?;
    let Some(file) = file else { return Some(place.address) };
    let path = Path::new(&spaces.modules.all.get(place.module)?.path);
    let is_same = || {
        path.file_name() == file.file_name()
            || path.canonicalize().ok().zip(file.canonicalize().ok()).is_some_and(|(a, b)| a == b)
    };
    same.entry(place.module).or_insert_with(is_same).then_some(place.address)
}

/// The most addresses that a message names.
const NAMED: usize = 8;

/// Where samples are that could be started with.
struct Nearest<'a> {
    /// The function around the place that was asked for.
    function: Option<String>,
    /// Addresses with their samples, the nearest first; of that function, if it is known.
    places: Vec<(u64, usize)>,
    file: Option<&'a Path>,
    range: &'a Range<u64>,
}

impl<'a> Nearest<'a> {
    fn of(sampled: &BTreeMap<u64, usize>, file: Option<&'a Path>, range: &'a Range<u64>) -> Self {
        let program = file.and_then(|path| tma::files::read(path, LONGEST_PROGRAM).ok());
        let around = program.and_then(|data| function_around(&data, range.start));
        let (function, whole) = around.unzip();
        let whole = whole.unwrap_or(0..u64::MAX);
        let mut places: Vec<(u64, usize)> = sampled.range(whole).map(|(a, n)| (*a, *n)).collect();
        places.sort_by_key(|(address, _)| address.abs_diff(range.start));
        Self { function, places, file, range }
    }

    /// Cause and remedy; `registers` samples have any.
    fn told(&self, registers: usize) -> (String, String) {
        let start = self.range.start;
        let mut cause = format!("none of {registers} samples with registers is at {start:#x}");
        let within = self.function.as_ref().map(|f| format!(" in {f}")).unwrap_or_default();
        let Some((nearest, _)) = self.places.first() else {
            cause += &format!(", nor elsewhere{within}");
            return (cause, "record longer or at a higher rate: --frequency".to_owned());
        };
        let named: Vec<String> =
            self.places.iter().take(NAMED).map(|(a, n)| format!("{a:#x} ({n})")).collect();
        cause += &format!("; nearest{within} (number of samples): {}", named.join(", "));
        let left = self.places.len().saturating_sub(NAMED);
        if left > 0 {
            cause += &format!(" and {left} more");
        }
        let file = self.file.map_or("FILE".to_owned(), |f| f.display().to_string());
        let inside = self.places.iter().find(|(a, _)| self.range.contains(a));
        let hint = match inside {
            Some((at, _)) => format!(
                "registers hold only where they were sampled; if the block is a loop, begin it \
                 there: tdtool deps --path {file}:{at:#x}..{:#x},{start:#x}..{at:#x}",
                self.range.end
            ),
            None => format!(
                "registers hold only where they were sampled: begin at one of these, \
                 {file}:{nearest:#x}..END"
            ),
        };
        (cause, hint)
    }
}

fn values(sample: &Sample) -> Option<InitialValues> {
    let registers = sample.registers.as_ref().filter(|r| r.wide)?;
    let mut given = InitialValues::default();
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
    fn where_samples_are_is_told_with_a_bounded_list_and_what_to_type() {
        let sampled: BTreeMap<u64, usize> = (0..100).map(|i| (0x1002 + 16 * i, 3)).collect();
        let told = |range: Range<u64>| Nearest::of(&sampled, None, &range).told(300);
        let (cause, hint) = told(0x1010..0x1018);
        assert!(cause.contains("0x1012 (3), 0x1002 (3), 0x1022 (3)"), "{cause}");
        assert!(cause.ends_with("and 92 more"), "{cause}");
        assert!(hint.contains("--path FILE:0x1012..0x1018,0x1010..0x1012"), "{hint}");
        let (_, hint) = told(0x1003..0x1008);
        assert!(hint.contains("FILE:0x1002..END"), "{hint}");
        let (cause, _) = Nearest::of(&BTreeMap::new(), None, &(1..2)).told(5);
        assert!(cause.contains("nor elsewhere"), "{cause}");
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
