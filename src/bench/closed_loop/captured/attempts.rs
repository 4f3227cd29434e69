//! Which executions are tried: the program's whole one, else one that ends earlier.

use super::{Captured, Unfit};
use crate::Snapshot;
use crate::closed_loop::bounded::bounded;
use crate::closed_loop::leave_early::Bounded;
use crate::harness::entry_counter::Counter;
use crate::runner::Runner;
use tma::Result;

/// Most pages of a loop that runs beyond its followed iterations: an L1 data cache of 32 KiB.
const IN_CACHE: usize = 8;
/// Minimum iterations to count: fewer before a call are mostly start and end.
const FEWEST: u64 = 4;

impl Captured {
    /// Runs the loop of a snapshot once, as far as it is known; `Err` says why it cannot be run with
    /// those values.
    ///
    /// # Errors
    /// The sandbox cannot be started.
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
