//! The pages of the program's memory that an execution accesses.

use super::{Captured, TABLE, Unfit, run_once, words};
use crate::Snapshot;
use crate::runner::Runner;
use crate::sandbox::{Ended, layout as at};
use std::collections::BTreeMap;
use tma::Result;

impl Captured {
    /// Finds which of the known pages it accesses: each run adds the first missing page that made it go wrong.
    pub(super) fn find_pages(
        &mut self,
        runner: &mut Runner,
        snapshot: &Snapshot,
        known: &BTreeMap<u64, Vec<u8>>,
    ) -> Result<std::result::Result<(), Unfit>> {
        let accessed = |(page, _): &(&u64, _)| !snapshot.nearby.contains(page);
        let mut images: BTreeMap<u64, Vec<u8>> =
            known.iter().filter(accessed).map(|(page, bytes)| (*page, bytes.clone())).collect();
        loop {
            if images.len() > at::PHYSICAL_MAX {
                let many = images.len();
                let room = at::PHYSICAL_MAX;
                let why = format!("it accesses {many} pages, and the sandbox has {room}");
                return Ok(Err(why.into()));
            }
            self.images = images.keys().copied().collect();
            runner.images(&images)?;
            self.set_values(runner, snapshot)?;
            let program = self.untimed(self.trips);
            if program.end() > at::CODE + at::CODE_SIZE {
                return Ok(Err("its code exceeds the code area of the sandbox".into()));
            }
            let ended = run_once(runner, &program)?;
            let Some(pages) = runner.pages() else {
                return Ok(Err("it overwrote the harness".into()));
            };
            let Some(missed) = pages.iter().find(|page| !images.contains_key(page)) else {
                return Ok(if ended == Ended::Done { Ok(()) } else { Err(words(&ended)) });
            };
            let Some(content) = known.get(missed) else {
                let why = format!("it accesses a page that was not captured ({missed:#x})");
                return Ok(Err(why.into()));
            };
            images.insert(*missed, content.clone());
        }
    }

    /// The pages of the snapshot, those of `[rip+x]` operands where the sandbox has them.
    pub(super) fn known(
        &self,
        runner: &mut Runner,
        snapshot: &Snapshot,
    ) -> Result<BTreeMap<u64, Vec<u8>>> {
        let base = runner.worker()?.base();
        let page = |address: u64| address & !(at::PAGE as u64 - 1);
        let mut images: BTreeMap<u64, Vec<u8>> =
            snapshot.pages.iter().map(|(address, bytes)| (*address, bytes.to_vec())).collect();
        for target in self.region.rip_targets() {
            let real = target.wrapping_sub(snapshot.address).wrapping_add(snapshot.running_at);
            let here = base + self.rip(target) as u64;
            // A table may extend to both sides of the address.
            let around = page(real.saturating_sub(TABLE))..real.saturating_add(TABLE);
            for (address, bytes) in snapshot.pages.range(around) {
                let moved = address.wrapping_sub(page(real)).wrapping_add(page(here));
                images.insert(moved, bytes.to_vec());
            }
        }
        Ok(images)
    }
}
