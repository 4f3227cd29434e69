//! Whether a run without probes does what the counted one did. Blocks that are entered rarely are counted again, where their
//! probes take next to no time: a program that a clock ends does less work while all others are counted, too.

use super::ask::Functions;
use crate::hot::hottest::{Hot, Hottest};
use report::documents::count::{BlockRow, Count};
use report::documents::estimate::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Seconds of a probe's execution, low and at most, about: 0.6 ns in xz, 6.4 in a loop of mispredicted branches, on an Emerald
/// Rapids.
const AT_LEAST: f64 = 1e-9;
const AT_MOST: f64 = 8e-9;
/// The part of a run that probes may take that are to change nothing.
const LITTLE: f64 = 0.01;

/// The blocks whose probes together take little of a run of so many seconds, by file.
pub(super) fn rare(count: &Count, seconds: f64) -> BTreeMap<PathBuf, BTreeSet<u64>> {
    let mut rows: Vec<&BlockRow> = count.blocks.iter().collect();
    rows.sort_by_key(|row| row.count);
    let (mut found, mut all) = (BTreeMap::<PathBuf, BTreeSet<u64>>::new(), 0.0);
    for row in rows {
        all += row.count as f64;
        if all * AT_MOST > LITTLE * seconds {
            break;
        }
        found.entry(PathBuf::from(&row.module)).or_default().insert(row.start.0);
    }
    found
}

/// Probes that take less than this part of a run are not missed in its time.
const NOTICED: f64 = 0.05;
/// A run that a clock ends takes longer by at most this part of its probes' time, and by so many seconds: to start beside
/// other work.
const LONGER: f64 = 0.3;
const START: f64 = 0.1;

/// Whether the counted run took hardly longer than the sampled one although its probes take time: a clock may have ended
/// both.
pub(super) fn is_by_the_clock(count: &Count, seconds: f64, found: &Functions) -> bool {
    let plain = found.hot.seconds;
    let probes = entries(count) * AT_LEAST;
    probes > NOTICED * found.task.unwrap_or(plain) && seconds < plain + (LONGER * probes).min(START)
}

/// Instructions that two runs may execute differently in functions with few samples each, relative: a program prints
/// its time, say.
const ALIKE: f64 = 0.01;
/// Share of all instructions from which on the difference of a single block counts, if its function has few samples.
const LARGE: f64 = 0.01;

/// How two counted runs differ, in blocks that both counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Repeated {
    /// Whether they entered all blocks of hot functions equally often, and others about so.
    pub is_same: bool,
    /// By how much entries differ, relative: those of all blocks together, weighted by instructions, or of the hot or
    /// large block that differs most.
    pub differs: f64,
    /// How much more work the sampled run did, if blocks of hot functions show it.
    pub work: Option<Work>,
}

/// The work of a run without probes where nothing shows it, if a clock may have ended the counted one.
pub(super) const UNTOLD: Work = Work { ratio: 1.0, error: 0.4 };

/// Entries of the blocks that have a probe.
fn entries(count: &Count) -> f64 {
    count.blocks.iter().filter(|row| row.probe.is_some()).map(|row| row.count as f64).sum()
}

impl Repeated {
    /// Compares a counted run with one that counted rare blocks; the sampled run had `time` times the processor time of
    /// the latter.
    pub fn of(one: &Count, other: &Count, hot: &Hottest, time: f64) -> Self {
        let again: BTreeMap<_, _> =
            other.blocks.iter().map(|row| ((&row.module, row.start), row.count)).collect();
        let both = one.blocks.iter().filter_map(|row| {
            let again = *again.get(&(&row.module, row.start))?;
            Some(Both { row, again, is_hot: hot.has(&row.module, row.start.0) })
        });
        let both: Vec<Both> = both.collect();
        let all: f64 = both.iter().map(Both::weight).sum();
        let (mut different, mut most, mut is_same) = (0.0, 0.0_f64, true);
        for block in &both {
            let own = block.differs();
            different += own * block.weight();
            if block.is_hot || block.weight() >= LARGE * all {
                most = most.max(own);
            }
            is_same &= own == 0.0 || !block.is_hot;
        }
        let overall = different / all.max(1.0);
        let is_same = is_same && overall <= ALIKE;
        Self { is_same, differs: overall.max(most), work: work(&both, hot, time) }
    }
}

/// A block that two runs counted.
struct Both<'a> {
    row: &'a BlockRow,
    again: u64,
    is_hot: bool,
}

impl Both<'_> {
    /// Instructions of the first run.
    fn weight(&self) -> f64 {
        self.row.count as f64 * self.row.instructions as f64
    }

    /// The difference of its entries, relative.
    fn differs(&self) -> f64 {
        self.again.abs_diff(self.row.count) as f64 / self.row.count.max(1) as f64
    }
}

/// Entries from which on a block tells how much work was done.
const TELLING: u64 = 30;
/// A function with this share of the samples has a say in the error.
const LARGE_FUNCTION: f64 = 0.05;
/// The relative error at least: plain runs of one program differ by so much on a shared machine.
const AT_LEAST_WRONG: f64 = 0.1;

/// How much more work the sampled run did than the counted one, by the blocks of hot functions that both counted: of each function the one with
/// most entries, weighted by the function's samples. That of the sampled run is in proportion to its processor time.
fn work(both: &[Both], hot: &Hottest, time: f64) -> Option<Work> {
    let samples = |of: &Hot| of.blocks.iter().map(|(_, samples)| *samples as f64).sum::<f64>();
    let ratio = |of: &Hot| {
        let own = both.iter().filter(|block| {
            of.path.as_os_str() == block.row.module.as_str()
                && of.range.contains(&block.row.start.0)
                && block.row.count >= TELLING
        });
        let most = own.max_by_key(|block| block.row.count)?;
        Some((samples(of), most.again as f64 / most.row.count as f64))
    };
    let mut ratios: Vec<(f64, f64)> = hot.functions.iter().filter_map(ratio).collect();
    ratios.sort_by(|a, b| a.1.total_cmp(&b.1));
    let all: f64 = ratios.iter().map(|(samples, _)| samples).sum();
    let mut held = 0.0;
    let median = ratios.iter().find(|(samples, _)| {
        held += samples;
        held >= all / 2.0
    });
    let (_, ratio) = *median.filter(|(_, ratio)| *ratio > 0.0)?;
    let has_a_say = |one: &&(f64, f64)| one.0 >= LARGE_FUNCTION * all;
    let errors = ratios.iter().filter(has_a_say).map(|one| (one.1 / ratio - 1.0).abs());
    Some(Work { ratio: ratio * time, error: errors.fold(AT_LEAST_WRONG, f64::max) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::count::ProbeKind;

    /// Two functions, of which the second has most samples.
    fn hot() -> Hottest {
        let function = |name: &str, start: u64, samples| Hot {
            path: "/p".into(),
            name: name.to_owned(),
            range: start..start + 0x100,
            share: 0.5,
            gap: None,
            blocks: vec![(start, samples)],
        };
        Hottest {
            functions: vec![function("set-up", 0x100, 4), function("work", 0x200, 96)],
            ..Hottest::default()
        }
    }

    fn count(all: &[(u64, u64)]) -> Count {
        let row = |(at, count): &(u64, u64)| BlockRow {
            module: "/p".to_owned(),
            start: (*at).into(),
            end: (*at + 4).into(),
            instructions: 2,
            count: *count,
            probe: Some(ProbeKind::Single),
            ..BlockRow::default()
        };
        Count { blocks: all.iter().map(row).collect(), ..Count::default() }
    }

    #[test]
    fn a_run_that_a_clock_ends_is_scaled_by_what_it_did_and_not_by_its_set_up() {
        let first = count(&[(0x100, 1), (0x110, 60_000), (0x200, 1_000), (0x210, 400_000_000)]);
        // Half a second of the most frequent block would not be little.
        let rare = rare(&first, 2.0);
        assert_eq!(rare[&PathBuf::from("/p")], BTreeSet::from([0x100, 0x110, 0x200]));
        let found = Repeated::of(
            &first,
            &count(&[(0x100, 1), (0x110, 60_000), (0x200, 2_500)]),
            &hot(),
            1.0,
        );
        assert!(!found.is_same);
        assert_eq!(found.differs, 1.5);
        assert_eq!(found.work, Some(Work { ratio: 2.5, error: AT_LEAST_WRONG }));
        // Others had half of the processor meanwhile.
        let again = count(&[(0x100, 1), (0x110, 60_000), (0x200, 1_250)]);
        let found = Repeated::of(&first, &again, &hot(), 2.0);
        assert_eq!(found.work, Some(Work { ratio: 2.5, error: AT_LEAST_WRONG }));
    }

    #[test]
    fn runs_that_do_the_same_are_not_scaled() {
        let first = count(&[(0x100, 1), (0x200, 1_000)]);
        let found = Repeated::of(&first, &first, &hot(), 1.0);
        let work = Some(Work { ratio: 1.0, error: AT_LEAST_WRONG });
        assert_eq!(found, Repeated { is_same: true, differs: 0.0, work });
    }

    #[test]
    fn functions_that_did_differently_more_work_widen_the_error() {
        let mut hot = hot();
        hot.functions[0].blocks[0].1 = 40;
        let first = count(&[(0x100, 1_000), (0x200, 1_000)]);
        let found = Repeated::of(&first, &count(&[(0x100, 1_000), (0x200, 2_000)]), &hot, 1.0);
        assert_eq!(found.work, Some(Work { ratio: 2.0, error: 0.5 }));
    }

    #[test]
    fn set_up_that_is_the_same_does_not_show_that_the_work_is() {
        let first = count(&[(0x100, 1), (0x200, 2), (0x210, 400_000_000)]);
        let found = Repeated::of(&first, &count(&[(0x100, 1), (0x200, 2)]), &hot(), 1.0);
        assert_eq!((found.is_same, found.work), (true, None));
    }
}
