//! The precision at which the kernel samples an event, tested on this process.

use super::ability::attempt;
use super::plan::SampledEvent;
use crate::perf::{Opening, Sampled};
use nix::errno::Errno;

/// The event with the highest `precise_ip` that the kernel accepts, at most that of `event`.
///
/// # Errors
/// The kernel's answer if it does not accept the event at all.
pub fn with_supported_precision(
    mut event: SampledEvent,
    user_only: bool,
) -> Result<SampledEvent, Errno> {
    loop {
        let opening = Opening {
            precise: event.precise,
            rate: Some(event.rate),
            user_only: user_only && !event.encoding.kernel_only,
            ..attempt(event.encoding)
        };
        match (Sampled::open(&opening), event.precise) {
            (Ok(_), _) => return Ok(event),
            (Err(errno), 0) => return Err(errno),
            (Err(_), _) => event.precise -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::{Rate, software};
    use crate::sampling::ability;

    #[test]
    fn cpu_clock_is_accepted_if_perf_events_are() {
        let Ok(ability) = ability() else {
            eprintln!("skipped: no perf events here");
            return;
        };
        let event = SampledEvent {
            name: "cpu-clock".into(),
            encoding: software(0),
            precise: 0,
            rate: Rate::Frequency(100),
            cpus: None,
        };
        assert_eq!(with_supported_precision(event.clone(), ability.user_only), Ok(event));
    }
}
