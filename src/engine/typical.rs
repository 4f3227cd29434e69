//! Chooses a typical execution of a loop: all entries are counted in one run of the program, trips are recorded in
//! bursts in another, and of the entries at the beginning, which can be numbered, one with the median of all trips
//! is taken.

use crate::trips::Followed;
use branches::stacks::Distribution;
use branches::trips::{Outcome, Stream, Trips, add};
use isa::program::Around;
use pmu::Command;
use pmu::perf::Signals;
use probe::bursts::{Burst, Pace, Recorded, record};
use probe::count::{Unprobed, Wanted, count};
use probe::facts::{Function, NoCode, functions};
use probe::plan::branches;
use std::cell::RefCell;
use std::path::Path;
use std::{fmt, io};
use tma::{Error, Result};

/// An entry up to this one is reached by breakpoints within a fraction of a second (25 µs each).
const NEAR: u64 = 10_000;

/// A chosen execution of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typical {
    /// The entry of the block with which it begins, from 1.
    pub entry: u64,
    /// Its trips.
    pub trips: u64,
    /// Which it is of how many, and how typical.
    pub text: String,
}

/// Why no typical execution of a loop is captured.
#[derive(Debug)]
pub enum Untypical {
    /// The block is within its loop, or in none.
    Inside,
    /// The path of its file cannot be resolved.
    NoFile(io::Error),
    /// Its file has no code that can be counted.
    NoCode(NoCode),
    /// No function is known around it.
    NoSymbol,
    /// A run failed.
    Run(Error),
    /// Executions of several threads or processes have no order.
    Tasks,
    /// A branch of its function has no probe.
    NotRecorded(Unprobed),
    /// Trips cannot be told from the branches of its function.
    NoFlow,
    /// No execution was seen from its beginning to its end.
    NotSeen,
    /// No execution at the beginning of the run was seen from its beginning to its end.
    FirstNotSeen,
    /// There are fewer entries in one run than in the other.
    RunsDiffer,
    /// The execution had this many trips where it was chosen, and this many where it was captured.
    TripsDiffer(u64, u64),
}

impl fmt::Display for Untypical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoFile(error) => return error.fmt(f),
            Self::NoCode(why) => return why.fmt(f),
            Self::Run(error) => return error.fmt(f),
            Self::NotRecorded(why) => {
                return write!(f, "not all branches of its function were recorded: {why}");
            }
            Self::TripsDiffer(chosen, captured) => {
                return write!(
                    f,
                    "the program is not deterministic: what had {chosen} iterations in one run has {captured} in another"
                );
            }
            Self::Inside => "the block is not the first one of a loop",
            Self::NoSymbol => "the function around it has no symbol",
            Self::Tasks => "the program has several threads or processes",
            Self::NoFlow => "its function calls itself, or its flow is not known",
            Self::NotSeen => "no execution of the loop was seen from beginning to end",
            Self::FirstNotSeen => "its first executions were not seen whole",
            Self::RunsDiffer => "two runs of the program differ",
        })
    }
}

/// Runs the command twice and chooses an execution of the loop `around` of `file`; or the reason why none can
/// be chosen.
///
/// # Errors
/// A signal has interrupted a run.
pub fn typical(
    command: &Command,
    file: &Path,
    around: &Around,
) -> Result<std::result::Result<Typical, Untypical>> {
    let head = around.head.start;
    let wanted = match wanted(file, head) {
        Ok(wanted) => [wanted],
        Err(why) => return Ok(Err(why)),
    };
    let signals = Signals::catch()?;
    let counts = match count(command, &wanted, &signals) {
        Ok(counts) => counts,
        Err(error) => return Ok(Err(Untypical::Run(error))),
    };
    interrupted(counts.interrupted)?;
    let followed = RefCell::new(None);
    let requests = |_: usize, function: &Function| {
        *followed.borrow_mut() = Some(Followed::of(function));
        branches(function)
    };
    let recorded = match record(command, &wanted, &requests, Pace::default(), &signals) {
        Ok(recorded) => recorded,
        Err(error) => return Ok(Err(Untypical::Run(error))),
    };
    interrupted(recorded.interrupted)?;
    let followed = followed.into_inner().unwrap_or_default();
    let one = counts.functions.first().and_then(|f| f.as_ref().ok());
    let one = one.and_then(|f| f.loops.iter().find(|one| one.head == head));
    let (entries, iterations) = (one.and_then(|l| l.entries), one.and_then(|l| l.iterations));
    Ok(seen(&recorded, &followed, head)
        .and_then(|(first, all)| choose(&first, &all, entries, iterations)))
}

fn interrupted(signal: Option<i32>) -> Result<()> {
    match signal {
        None => Ok(()),
        Some(signal) => Err(Error::failed("no execution of the loop was chosen")
            .because(format!("signal {signal} interrupted the run"))),
    }
}

/// The function with an address.
fn wanted(file: &Path, at: u64) -> std::result::Result<Wanted, Untypical> {
    let path = file.canonicalize().map_err(Untypical::NoFile)?;
    let all = functions(&path).map_err(Untypical::NoCode)?;
    let of = all.into_iter().find(|named| named.range.contains(&at));
    let range = of.ok_or(Untypical::NoSymbol)?.range;
    Ok(Wanted { path, range })
}

/// Trips of the loop's executions: those from the beginning of the run, in order, and all that were seen.
fn seen(
    recorded: &Recorded,
    followed: &Followed,
    head: u64,
) -> std::result::Result<(Vec<u64>, Distribution), Untypical> {
    if recorded.tasks > 0 {
        return Err(Untypical::Tasks);
    }
    if let Some(why) = recorded.observed.iter().find_map(|o| o.refused.as_ref()) {
        return Err(Untypical::NotRecorded(why.clone()));
    }
    let number = followed.number(head).ok_or(Untypical::NoFlow)?;
    let shapes = [followed.shape.clone()];
    let of = |burst: &Burst| {
        let outcome = |record: &probe::bursts::Record| {
            let at = recorded.observed[record.site as usize].request.at;
            Outcome { function: 0, at, value: record.value }
        };
        let outcomes = burst.records.iter().map(outcome).collect();
        let mut trips = vec![vec![Trips::default(); shapes[0].loops.len()]];
        add(&shapes, &Stream { is_first: burst.is_first, outcomes }, &mut trips);
        trips.swap_remove(0).swap_remove(number)
    };
    let mut all = Distribution::default();
    let mut first = Vec::new();
    for burst in &recorded.bursts {
        let found = of(burst);
        all.add_all(&found.whole);
        if burst.is_first && burst.image == 0 {
            first = found.order;
        }
    }
    Ok((first, all))
}

/// Chooses one of the executions at the beginning. How often the loop is entered and iterated in all is for
/// the text.
fn choose(
    first: &[u64],
    all: &Distribution,
    entries: Option<u64>,
    iterations: Option<u64>,
) -> std::result::Result<Typical, Untypical> {
    let [median, low, high] = [0.5, 0.05, 0.95].map(|share| all.quantile(share));
    let (Some(median), Some(low), Some(high)) = (median, low, high) else {
        return Err(Untypical::NotSeen);
    };
    let mut entry = 1;
    let mut executions = Vec::new();
    for (number, trips) in (1_u64..).zip(first) {
        executions.push((number, entry, *trips));
        entry += trips;
    }
    // The first of its executions may be unlike the others.
    let rest = &executions[executions.len().min(1)..];
    let rest = if rest.is_empty() { &executions[..] } else { rest };
    let near = |(_, entry, _): &&(u64, u64, u64)| *entry <= NEAR;
    let away = |(_, _, trips): &&(u64, u64, u64)| trips.abs_diff(median);
    let best = rest.iter().filter(near).map(|one| away(&one)).min();
    let found = rest.iter().filter(near).rfind(|one| Some(away(one)) == best);
    let (number, entry, trips) = *found.ok_or(Untypical::FirstNotSeen)?;
    let of = |n: Option<u64>| n.map_or(String::new(), |n| format!(" of {n}"));
    if entries.is_some_and(|entries| entries < first.len() as u64) {
        return Err(Untypical::RunsDiffer);
    }
    let which = match trips == median {
        true => "the median".to_owned(),
        false => format!("the median is {median}"),
    };
    Ok(Typical {
        entry,
        trips,
        text: format!(
            "chosen: execution {number}{} of the loop (entry {entry}{} of the block) with {trips} \
             iterations, {which}; 5-95 %: {low}-{high}, of {} executions that were seen",
            of(entries),
            of(iterations),
            all.number()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 3, 5, 5, 9 trips at the beginning; later on 5 is the median.
    #[test]
    fn a_later_execution_with_the_median_is_chosen() {
        let first = [5, 3, 5, 9];
        let mut all = Distribution::default();
        [5, 3, 5, 9, 5, 5, 1].into_iter().for_each(|trips| all.add(trips));
        let found = choose(&first, &all, None, None).unwrap();
        // 5 + 3 entries before it.
        assert_eq!((found.entry, found.trips), (9, 5));
        assert!(
            found.text.contains("execution 3 of the loop (entry 9 of the block)"),
            "{}",
            found.text
        );
        assert!(
            found.text.contains("5 iterations, the median; 5-95 %: 1-9, of 7"),
            "{}",
            found.text
        );
        let mut none = Distribution::default();
        assert!(choose(&[], &none, None, None).is_err());
        none.add(4);
        assert!(choose(&[], &none, None, None).is_err());
    }
}
