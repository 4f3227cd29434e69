//! Values of general registers at the entries of functions and loops, from a run that records some of the entries,
//! and the memory that addresses in registers point to. `summary` describes the values of a register.

mod summary;

use crate::steps::{self, Subject};
use probe::bursts::{Pace, Record, Recorded, Region};
use probe::count::{Counts, Wanted};
use probe::facts::Function;
use probe::plan::{AtEntry, LiveRegister, Request, at_entries};
use report::documents::Purpose;
use report::documents::count::{Count, ValueRow, ValuesAt};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use summary::{Sample, describe};
use tma::Result;

/// Bursts of 8,192 records, at most 128 of them: one for each register of an entry.
const PACE: Pace = Pace { length: 1 << 13, bursts: 128, pause: 0.1 };
/// Most blocks that are recorded: those that are entered most often.
const MOST: usize = 400;
/// Names of the registers by number, of 64, 32, 16 and 8 bits.
const NAMES: [[&str; 4]; 16] = [
    ["rax", "eax", "ax", "al"],
    ["rcx", "ecx", "cx", "cl"],
    ["rdx", "edx", "dx", "dl"],
    ["rbx", "ebx", "bx", "bl"],
    ["rsp", "esp", "sp", "spl"],
    ["rbp", "ebp", "bp", "bpl"],
    ["rsi", "esi", "si", "sil"],
    ["rdi", "edi", "di", "dil"],
    ["r8", "r8d", "r8w", "r8b"],
    ["r9", "r9d", "r9w", "r9b"],
    ["r10", "r10d", "r10w", "r10b"],
    ["r11", "r11d", "r11w", "r11b"],
    ["r12", "r12d", "r12w", "r12b"],
    ["r13", "r13d", "r13w", "r13b"],
    ["r14", "r14d", "r14w", "r14b"],
    ["r15", "r15d", "r15w", "r15b"],
];

/// A function and a block of it, by first address.
type Place = (usize, u64);

/// A chosen block.
#[derive(Debug, Clone)]
struct Chosen {
    of: ValuesAt,
    entries: Option<u64>,
    /// Its registers; none before its function was read.
    found: Option<AtEntry>,
}

/// Records registers at the entries of these functions (with their names), of their loops and of the blocks with
/// the addresses `at`, and adds the rows. The signal that interrupted that, if any.
///
/// # Errors
/// As [`Subject::record`].
pub(crate) fn enter(
    document: &mut Count,
    subject: &mut Subject<'_>,
    functions: &[(&str, &Wanted)],
    counts: &Counts,
    at: &[u64],
) -> Result<Option<i32>> {
    let wanted: Vec<Wanted> = functions.iter().map(|(_, wanted)| (*wanted).clone()).collect();
    let (chosen, left_out) = chosen(counts, &wanted, at);
    let chosen = RefCell::new(chosen);
    let requests = |number: usize, function: &Function| -> Vec<Request> {
        let mut chosen = chosen.borrow_mut();
        let all = at_entries(function).into_iter();
        all.filter_map(|found| {
            let of = chosen.get_mut(&(number, found.start))?;
            of.found.insert(found).request()
        })
        .collect()
    };
    let recorded = subject.record(&wanted, &requests, PACE)?;
    document.cost.push(subject.cost(Purpose::Values, &recorded));
    document.notes.extend(steps::notes(Purpose::Values, &recorded));
    document.notes.push(
        "values are those of the sampled entries; others may have had different ones".to_owned(),
    );
    if left_out > 0 {
        document.notes.push(format!(
            "values: of {MOST} blocks, those entered most often; {left_out} others were not recorded"
        ));
    }
    let samples = samples(&recorded);
    let chosen = chosen.into_inner();
    let rows = chosen.iter().map(|((number, start), of)| {
        let (name, wanted) = functions[*number];
        let mut row = row((*number, *start), of, &recorded, &samples);
        (row.module, row.function) = (wanted.path.display().to_string(), name.to_owned());
        if let (None, Some(Err(why))) = (&of.found, counts.functions.get(*number)) {
            row.reason = Some(why.to_string());
        }
        row
    });
    document.values = rows.collect();
    document.values.sort_by_key(|row| Reverse(row.entries));
    Ok(recorded.interrupted)
}

/// The blocks to record, and how many are left out.
fn chosen(counts: &Counts, wanted: &[Wanted], at: &[u64]) -> (BTreeMap<Place, Chosen>, usize) {
    let mut all = BTreeMap::new();
    for (number, found) in counts.functions.iter().enumerate() {
        let Ok(found) = found else { continue };
        let start = wanted[number].range.start;
        for block in &found.blocks {
            let asked = at.iter().any(|at| (block.start..block.end).contains(at));
            let of = match block.start {
                own if own == start => ValuesAt::Function,
                own if found.loops.iter().any(|one| one.head == own) => ValuesAt::Loop,
                _ if asked => ValuesAt::Block,
                _ => continue,
            };
            let entries = block.count.as_ref().ok().copied();
            if asked || entries != Some(0) {
                all.insert((number, block.start), Chosen { of, entries, found: None });
            }
        }
    }
    let mut order: Vec<(Option<u64>, Place)> =
        all.iter().map(|(place, of)| (of.entries, *place)).collect();
    order.sort_unstable_by_key(|(entries, place)| (Reverse(*entries), *place));
    let left_out = order.split_off(order.len().min(MOST));
    left_out.iter().for_each(|(_, place)| drop(all.remove(place)));
    (all, left_out.len())
}

/// A register of a request → its samples.
type Samples<'a> = BTreeMap<(u32, u8), Vec<Sample<'a>>>;

/// The samples of all registers, in order of time.
fn samples(recorded: &Recorded) -> Samples<'_> {
    let mut all = Samples::new();
    for burst in &recorded.bursts {
        // The thread of the last sample of each register in this burst.
        let mut last: BTreeMap<(u32, u8), u32> = BTreeMap::new();
        for record in &burst.records {
            let of = (record.site, record.part);
            let follows = last.insert(of, record.stack) == Some(record.stack);
            let place = place(&burst.memory, record);
            all.entry(of).or_default().push(Sample { value: record.value, follows, place });
        }
    }
    all
}

fn row(place: Place, of: &Chosen, recorded: &Recorded, samples: &Samples<'_>) -> ValueRow {
    let mut row =
        ValueRow { block: place.1.into(), of: of.of, entries: of.entries, ..ValueRow::default() };
    let Some(found) = &of.found else {
        row.reason = Some("its function could not be read".to_owned());
        return row;
    };
    let request = found.request();
    let is_it = |o: &probe::bursts::Observed| o.function == place.0 && Some(o.request) == request;
    let site = recorded.observed.iter().position(is_it);
    let refused = site.and_then(|site| recorded.observed[site].refused.as_ref());
    row.reason = match (request, site) {
        (None, _) => Some("it reads no general register that was set before".to_owned()),
        (_, None) => Some("its function could not be read".to_owned()),
        _ => refused.map(ToString::to_string),
    };
    let Some(site) = site else { return row };
    for register in &found.registers {
        let own = samples.get(&(site as u32, register.number)).map_or(&[][..], Vec::as_slice);
        row.sampled = row.sampled.max(own.len() as u64);
        row.registers.push(describe(name(register), register.bits, own));
    }
    if row.sampled == 0 {
        row.registers.clear();
        let never = "it was not entered while registers were recorded".to_owned();
        row.reason = row.reason.or(Some(never));
    }
    row
}

/// Its name, of as many bits as are read.
fn name(register: &LiveRegister) -> &'static str {
    let size = match register.bits {
        8 => 3,
        16 => 2,
        32 => 1,
        _ => 0,
    };
    NAMES[usize::from(register.number)][size]
}

/// Bits of an address in a page.
const PAGE: u32 = 12;

/// The memory that a record's value points to, by what was seen of it: `stack` (of its thread), `heap`, the name of a
/// file, `anonymous memory`.
pub fn place<'a>(memory: &'a [Arc<Vec<Region>>], record: &Record) -> Option<&'a str> {
    memory.iter().find_map(|seen| within(seen, record))
}

fn within<'a>(memory: &'a [Region], record: &Record) -> Option<&'a str> {
    let index = memory.partition_point(|r| r.range.start <= record.value).checked_sub(1)?;
    let region = memory.get(index).filter(|r| r.range.contains(&record.value))?;
    let (first, end) = (region.range.start >> PAGE, region.range.end >> PAGE);
    // A record has the lower 32 bits of the number of the stack's page.
    let to_stack = record.stack.wrapping_sub(first as u32);
    Some(match region.of.as_str() {
        _ if u64::from(to_stack) < end - first => "stack",
        "" => "anonymous memory",
        of => name_of_mapping(of),
    })
}

/// `[heap]` → `heap`, `/lib/libc.so.6` → `libc.so.6`.
fn name_of_mapping(of: &str) -> &str {
    match of.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(name) => name,
        None => of.rsplit('/').next().unwrap_or(of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_by_the_mappings() {
        let region = |range: std::ops::Range<u64>, of: &str| Region {
            range,
            of: of.to_owned(),
            in_file: None,
        };
        let memory = [
            region(0x40_0000..0x40_1000, "/bin/a"),
            region(0x50_0000..0x52_1000, "[heap]"),
            region(0x7f00_0000_0000..0x7f00_0080_0000, ""),
            region(0x7f00_1000_0000..0x7f00_1000_2000, ""),
        ];
        let later = [region(0x60_0000..0x60_1000, "/lib/b.so")];
        let memory = [later.to_vec(), memory.to_vec()].map(Arc::new);
        let at = |value| {
            let record = Record { site: 0, part: 0, stack: 0xf000_007f, value };
            place(&memory, &record)
        };
        let found =
            [0x40_0010, 0x60_0008, 0x50_0000, 0x7f00_0012_3450, 0x7f00_1000_0000, 0x60_1000];
        let named = ["a", "b.so", "heap", "stack", "anonymous memory"].map(Some);
        assert_eq!(found.map(at)[..5], named);
        assert_eq!(at(found[5]), None);
    }
}
