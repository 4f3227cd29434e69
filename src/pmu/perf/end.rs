//! The end of a run: the command's, and the result.

use super::opened::Opened;
use super::outcome::{End, RunResult};
use super::result;
use super::run::Run;
use crate::kernel::{Usage, Wake};
use crate::{Exit, Software};
use std::time::Duration;

/// Time between SIGTERM and SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);

impl Run<'_, '_> {
    /// Ends the command if it is still running; how it ended.
    pub(super) fn finish_command(&mut self, end: &End) -> Option<(Exit, Usage)> {
        self.request.command.as_ref()?;
        if end.forced {
            self.kernel.signal(libc::SIGTERM);
            let mut deadline = Some(self.kernel.now() + TERM_TIMEOUT);
            // Kills it after the timeout or another signal.
            while let wake @ (Wake::Signal { .. } | Wake::Time | Wake::Control(_)) =
                self.kernel.wait(deadline)
            {
                if matches!(wake, Wake::Control(_)) {
                    // The command itself may be blocked on the acknowledgement.
                    self.kernel.acknowledge();
                    continue;
                }
                self.kernel.signal(libc::SIGKILL);
                self.killed |= wake == Wake::Time;
                deadline = None;
            }
        }
        self.kernel.reap()
    }

    pub(super) fn result(
        &self,
        opened: &Opened,
        frames: &[Vec<u64>],
        software: Software,
        end: &End,
        exit: Option<Exit>,
    ) -> RunResult {
        let counts = result::counts(self.request, opened, frames, &self.unread, software.wall);
        let mut notes = opened.notes.clone();
        let of_control = self.control_notes(end.at);
        notes.extend(of_control.iter().cloned());
        if self.rejoined {
            notes
                .push("counters became free: groups that had been split were counted whole".into());
        }
        if !self.left.is_empty() {
            let left: Vec<String> = self.left.iter().map(u32::to_string).collect();
            notes.push(format!(
                "CPUs that went offline during the measurement: {}; their counts end there",
                left.join(", ")
            ));
        }
        if self.late_readings {
            notes.push(
                "the kernel refused some readings; later readings include their counts".into(),
            );
        }
        if self.request.command.is_some() && exit.is_none() {
            notes.push("how the command ended is unknown: something else waited for it".into());
        }
        if end.forced && end.interrupted.is_none() && self.request.command.is_some() {
            notes.push("the command was ended when the time was up".into());
        }
        if self.killed {
            let seconds = TERM_TIMEOUT.as_secs();
            notes.push(format!("the command did not end by SIGTERM in {seconds} s and was killed"));
        }
        RunResult {
            counts,
            software,
            // Ended by this program when the time was up: no failure of the command.
            exit: exit.filter(|_| !end.forced || end.interrupted.is_some()),
            interrupted: end.interrupted,
            user_only: opened.user_only,
            core_time: result::core_time(opened, frames, &self.unread),
            notes,
            of_control,
        }
    }
}
