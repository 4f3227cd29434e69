//! Chooses which executions of a captured loop are tried (the program's whole one, else one that ends earlier), and
//! checks that they end alike, and as in the program.

use super::bounded::{Bounded, bounded};
use super::captured::{Captured, RIP_ROOM, TABLE, Unfit, words};
use crate::Snapshot;
use crate::harness::loop_counter::Counter;
use crate::runner::Runner;
use crate::sandbox::{Ended, layout as at};
use crate::timing::measure::EIGHTHS;
use tma::Result;

/// Most pages of a loop that runs beyond its followed iterations: an L1 data cache of 32 KiB.
const IN_CACHE: usize = 8;
/// Minimum iterations to count: fewer before a call are mostly start and end.
const FEWEST: u64 = 4;

/// Runs of the loop that must end alike before it is timed.
const AGAIN: usize = 2;

impl Captured {
    /// Runs the loop of a snapshot once, as far as it is known; `Err` says why it cannot be run with
    /// those values.
    pub fn new(
        runner: &mut Runner,
        snapshot: &Snapshot,
    ) -> Result<std::result::Result<Self, Unfit>> {
        let mut reason = Unfit::from(endless(snapshot));
        if let Some(trips) = snapshot.trips.filter(|trips| *trips > 0) {
            let start = snapshot.registers;
            match Self::attempt(runner, snapshot, &snapshot.code, trips, start, None)? {
                Ok(captured) => return Ok(Ok(captured)),
                Err(why) if trips <= snapshot.stepped || why == Unfit::Unlike => {
                    return Ok(Err(why));
                }
                Err(why) => reason = why,
            }
            // Code that the program did not execute may be unfit to run.
            if snapshot.before_call.is_none() && trips <= snapshot.stepped + 1 {
                let executed = &snapshot.executed;
                if let Ok(captured) = Self::attempt(runner, snapshot, executed, trips, start, None)?
                {
                    return Ok(Ok(captured));
                }
            }
        }
        for bounded in bounded(snapshot) {
            match Self::left_early(runner, snapshot, &bounded)? {
                Ok(captured) => {
                    // Longer, once it is known to leave where the program was seen.
                    let longer = bounded.longer(snapshot).filter(|_| bounded.like.is_some());
                    let Some(longer) = longer else { return Ok(Ok(captured)) };
                    let longer = Self::left_early(runner, snapshot, &longer)?;
                    // The sandbox holds what the last attempt left there.
                    return match longer {
                        Ok(captured) => Ok(Ok(captured)),
                        Err(_) => Self::left_early(runner, snapshot, &bounded),
                    };
                }
                Err(Unfit::Overran) => {}
                Err(why) => reason = why,
            }
        }
        let enough = |(trips, _): &(u64, _)| *trips >= FEWEST;
        if !snapshot.followed_to.as_ref().is_some_and(enough) {
            return Ok(Err(reason));
        }
        Self::counted(runner, snapshot)
    }

    /// The iterations that were followed, ended by a counter at their start.
    fn counted(
        runner: &mut Runner,
        snapshot: &Snapshot,
    ) -> Result<std::result::Result<Self, Unfit>> {
        let counter = match Counter::of(&snapshot.executed, snapshot.address) {
            Ok(counter) => counter,
            Err(why) => return Ok(Err(why.into())),
        };
        match Bounded::counted(snapshot, counter) {
            Some(bounded) => Self::left_early(runner, snapshot, &bounded),
            None => Ok(Err(endless(snapshot).into())),
        }
    }

    fn left_early(
        runner: &mut Runner,
        snapshot: &Snapshot,
        bounded: &Bounded,
    ) -> Result<std::result::Result<Self, Unfit>> {
        let (trips, start) = (bounded.trips, bounded.registers(bounded.trips));
        let is_counted = bounded.counter.is_some();
        let code = if is_counted { snapshot.executed.as_slice() } else { &snapshot.code };
        let outcome = Self::attempt(runner, snapshot, code, trips, start, Some(bounded.clone()))?;
        let followed = snapshot.stepped.max(snapshot.followed_to.map_or(0, |(trips, _)| trips));
        Ok(outcome.and_then(|captured| {
            if bounded.trips > followed && captured.pages.len() > IN_CACHE {
                return Err("it leaves the L1 data cache".into());
            }
            Ok(captured)
        }))
    }
}

/// Why a loop did not run to its end.
fn endless(snapshot: &Snapshot) -> String {
    match (snapshot.before_call, snapshot.followed_to) {
        (Some(trips), _) => format!(
            "its end was not reached, and iteration {} of those that were followed calls a function or \
             jumps to a computed address",
            trips + 1
        ),
        (None, None) => "its end was not reached, nor that of its first iteration: it takes more \
                         instructions than are followed"
            .to_owned(),
        _ => format!(
            "its end was not reached in the first {} iterations, and no register that only its exit reads \
             ends it earlier",
            snapshot.at_least
        ),
    }
}

impl Captured {
    /// Finds written lines, then runs it again from the same values: it must end alike.
    pub(super) fn run_alike(
        &mut self,
        runner: &mut Runner,
    ) -> Result<std::result::Result<(), Unfit>> {
        let mut ends = Vec::new();
        let shortest = self.bounded.as_ref().filter(|bounded| bounded.eighth() > 0);
        let shortest = shortest.map(|bounded| bounded.length(EIGHTHS - 1));
        for trips in shortest.into_iter().chain([self.trips; AGAIN]) {
            let ended = runner.run_once(&self.untimed(trips))?;
            if ended != Ended::Done {
                return Ok(Err(words(&ended)));
            }
            let Some(pages) = runner.pages() else {
                return Ok(Err("it overwrote the harness".into()));
            };
            let not_captured = pages.iter().find(|page| !self.images.contains(page));
            if let Some(page) = not_captured {
                let why = format!("it accesses a page that was not captured ({page:#x})");
                return Ok(Err(why.into()));
            }
            self.lines = runner.changed_lines(&pages, self.values.memory, at::PHYSICAL_MAX);
            if self.lines.len() > at::LINES_MAX {
                return Ok(Err(format!("it writes {} cache lines", self.lines.len()).into()));
            }
            self.pages = pages;
            runner.lines(&self.lines)?;
            let end = runner.end_registers();
            if self.bounded.as_ref().is_some_and(|bounded| !self.is_planned(bounded, trips, &end)) {
                return Ok(Err(Unfit::Overran));
            }
            if trips == self.trips {
                ends.push(end);
            }
        }
        if let (None, Some(left_with)) = (&self.bounded, self.left_with)
            && !ends.iter().all(|end| self.is_like(end, &left_with))
        {
            return Ok(Err(Unfit::Unlike));
        }
        let alike = ends.windows(2).all(|pair| pair[0] == pair[1]);
        Ok(if alike { Ok(()) } else { Err("it does not end alike each time".into()) })
    }

    /// Whether registers after `trips` are as planned, and those of the program as far as they are known.
    fn is_planned(&self, bounded: &Bounded, trips: u64, end: &[u64]) -> bool {
        let has = |(r, value): (u8, u64)| end.get(usize::from(r)) == Some(&value);
        let like = bounded.like.filter(|(known, _)| trips == *known).map(|(_, mut like)| {
            if let Some(set) = bounded.register.map(usize::from) {
                like[set] = end.get(set).copied().unwrap_or(like[set]);
            }
            like
        });
        bounded.ends(trips).all(has) && like.is_none_or(|like| self.is_like(end, &like))
    }

    /// Whether registers at the end are the program's, apart from pointers made by `lea [rip+x]`.
    fn is_like(&self, end: &[u64], program: &[u64; 16]) -> bool {
        let is_moved = |value: u64| {
            let from = self.moved.wrapping_sub(TABLE);
            self.region.rip_targets().next().is_some()
                && (from..self.moved + RIP_ROOM + TABLE).contains(&value)
        };
        end.iter().zip(program).all(|(own, other)| own == other || is_moved(*own))
    }
}
