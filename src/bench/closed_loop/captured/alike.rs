//! Whether executions end alike, and as in the program.

use super::{Captured, RIP_ROOM, TABLE, Unfit, run_once, words};
use crate::closed_loop::leave_early::Bounded;
use crate::runner::Runner;
use crate::sandbox::{Ended, layout as at};
use crate::timing::measure::EIGHTHS;
use tma::Result;

/// Runs of the loop that must end alike before it is timed.
const AGAIN: usize = 2;

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
            let ended = run_once(runner, &self.untimed(trips))?;
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
