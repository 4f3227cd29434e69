//! Which execution of a loop is a typical one: all entries are counted in one run of the program, trips are
//! recorded in bursts in another, and of those at the beginning, whose entries can be numbered, one with the
//! median of all trips is chosen.

use crate::trips::Followed;
use branches::stacks::Distribution;
use branches::trips::{Outcome, Stream, Trips, add};
use isa::program::Around;
use pmu::Command;
use pmu::perf::Signals;
use probe::bursts::{Burst, Pace, Recorded, record};
use probe::count::{Wanted, count};
use probe::facts::{Function, functions};
use probe::plan::branches;
use std::cell::RefCell;
use std::path::Path;
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

/// Runs the command twice and chooses an execution of the loop `around` of `file`; or the reason why none can
/// be chosen.
///
/// # Errors
/// A signal has interrupted a run.
pub fn typical(
    command: &Command,
    file: &Path,
    around: &Around,
) -> Result<std::result::Result<Typical, String>> {
    let head = around.head.start;
    let wanted = match wanted(file, head) {
        Ok(wanted) => [wanted],
        Err(why) => return Ok(Err(why)),
    };
    let signals = Signals::catch()?;
    let counts = match count(command, &wanted, &signals) {
        Ok(counts) => counts,
        Err(error) => return Ok(Err(error.to_string())),
    };
    interrupted(counts.interrupted)?;
    let followed = RefCell::new(None);
    let wishes = |_: usize, function: &Function| {
        *followed.borrow_mut() = Some(Followed::of(function));
        branches(function)
    };
    let recorded = match record(command, &wanted, &wishes, Pace::default(), &signals) {
        Ok(recorded) => recorded,
        Err(error) => return Ok(Err(error.to_string())),
    };
    interrupted(recorded.interrupted)?;
    let followed = followed.into_inner().unwrap_or_default();
    let one = counts.functions.first().and_then(|f| f.as_ref().ok());
    let one = one.and_then(|f| f.loops.iter().find(|one| one.head == head));
    let of = (one.and_then(|l| l.entries), one.and_then(|l| l.iterations));
    Ok(seen(&recorded, &followed, head).and_then(|(first, all)| choose(&first, &all, of)))
}

fn interrupted(signal: Option<i32>) -> Result<()> {
    match signal {
        None => Ok(()),
        Some(signal) => Err(Error::failed("no execution of the loop was chosen")
            .because(format!("signal {signal} interrupted the run"))),
    }
}

/// The function with an address.
fn wanted(file: &Path, at: u64) -> std::result::Result<Wanted, String> {
    let path = file.canonicalize().map_err(|e| e.to_string())?;
    let all = functions(&path).map_err(|why| why.to_string())?;
    let of = all.into_iter().find(|named| named.range.contains(&at));
    let range = of.ok_or("the function around it has no symbol")?.range;
    Ok(Wanted { path, range })
}

/// Trips of the loop's executions: those from the beginning of the run, in order, and all that were seen.
fn seen(
    recorded: &Recorded,
    followed: &Followed,
    head: u64,
) -> std::result::Result<(Vec<u64>, Distribution), String> {
    if recorded.tasks > 0 {
        return Err("the program has several threads or processes".to_owned());
    }
    if let Some(why) = recorded.observed.iter().find_map(|o| o.refused.as_ref()) {
        return Err(format!("not all branches of its function were recorded: {why}"));
    }
    let number =
        followed.number(head).ok_or("its function calls itself, or its flow is not known")?;
    let shapes = [followed.shape.clone()];
    let of = |burst: &Burst| {
        let outcome = |record: &probe::bursts::Record| {
            let at = recorded.observed[record.site as usize].wish.at;
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
    (entries, iterations): (Option<u64>, Option<u64>),
) -> std::result::Result<Typical, String> {
    let [median, low, high] = [0.5, 0.05, 0.95].map(|share| all.quantile(share));
    let (Some(median), Some(low), Some(high)) = (median, low, high) else {
        return Err("no execution of the loop was seen from beginning to end".to_owned());
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
    let (number, entry, trips) = *found.ok_or("its first executions were not seen whole")?;
    let of = |n: Option<u64>| n.map_or(String::new(), |n| format!(" of {n}"));
    if entries.is_some_and(|entries| entries < first.len() as u64) {
        return Err("two runs of the program differ".to_owned());
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
        let found = choose(&first, &all, (None, None)).unwrap();
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
        assert!(choose(&[], &none, (None, None)).is_err());
        none.add(4);
        assert!(choose(&[], &none, (None, None)).is_err());
    }
}
