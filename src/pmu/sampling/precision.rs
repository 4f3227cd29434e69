//! The precision at which the kernel samples an event, tested on this process.

use super::ability::attempt;
use super::plan::SampledEvent;
use crate::perf::{Opening, Rate, Sampled};
use crate::records::format::SampleFormat;
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
        let least = attempt(event.encoding);
        let opening = Opening {
            precise: event.precise,
            rate: Some(event.rate),
            user_only: user_only && !event.encoding.kernel_only,
            format: event.extra.added_to(least.format),
            ..least
        };
        match (with_leader(&event, &opening).map(drop), event.precise) {
            (Ok(_), _) => return Ok(event),
            (Err(errno), 0) => return Err(errno),
            (Err(_), _) => event.precise -= 1,
        }
    }
}

/// Opens an event and, before it, the leader that it needs: the event, then the leader.
pub(super) fn with_leader(
    event: &SampledEvent,
    opening: &Opening<'_>,
) -> Result<(Sampled, Option<Sampled>), Errno> {
    let Some(encoding) = event.leader else { return Ok((Sampled::open(opening)?, None)) };
    let counted = SampleFormat {
        sample_type: opening.format.sample_type & !event.extra.fields,
        ..opening.format
    };
    let mut leader = Sampled::open(&Opening {
        encoding,
        precise: 0,
        rate: Some(Rate::Period(0)),
        format: SampleFormat { branch_sample_type: 0, ..counted },
        ..*opening
    })?;
    Ok((Sampled::open_in(opening, &mut leader)?, Some(leader)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::software;
    use crate::sampling::{Extra, ability};

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
            extra: Extra::default(),
            leader: None,
        };
        assert_eq!(with_supported_precision(event.clone(), ability.user_only), Ok(event));
    }
}
