//! The precision at which the kernel samples an event, tested on this process.

use super::ability::attempt;
use super::plan::{CountedEvent, SampledEvent};
use crate::perf::{Opening, Rate, Sampled};
use crate::records::format::{SampleFormat, field};
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
        match (with_group(&event, &opening).map(drop), event.precise) {
            (Ok(_), _) => return Ok(event),
            (Err(errno), 0) => return Err(errno),
            (Err(_), _) => event.precise -= 1,
        }
    }
}

/// Opens an event after the events that are counted in its group: the event, then those.
pub(super) fn with_group(
    event: &SampledEvent,
    opening: &Opening<'_>,
) -> Result<(Sampled, Vec<Sampled>), Errno> {
    let counted = SampleFormat {
        sample_type: opening.format.sample_type & !event.extra.fields,
        branch_sample_type: 0,
        ..opening.format
    };
    let mut group: Vec<Sampled> = Vec::new();
    for CountedEvent { encoding, .. } in &event.group {
        let member = Opening {
            encoding: *encoding,
            precise: 0,
            rate: Some(Rate::Period(0)),
            format: counted,
            ..*opening
        };
        let open = match group.first_mut() {
            Some(leader) => Sampled::open_in(&member, leader)?,
            None => Sampled::open(&member)?,
        };
        group.push(open);
    }
    let sampled = match group.first_mut() {
        Some(leader) => Sampled::open_in(opening, leader)?,
        None => Sampled::open(opening)?,
    };
    Ok((sampled, group))
}

/// Whether samples of inherited events can hold counts: from Linux 6.13.
pub fn reads_inherited(event: &SampledEvent, user_only: bool) -> bool {
    let least = attempt(event.encoding);
    let opening = Opening {
        precise: event.precise,
        rate: Some(event.rate),
        user_only: user_only && !event.encoding.kernel_only,
        format: event.extra.added_to(SampleFormat {
            sample_type: least.format.sample_type | field::TID,
            ..least.format
        }),
        inherit: true,
        ..least
    };
    with_group(event, &opening).is_ok()
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
            group: Vec::new(),
            inherits: true,
        };
        assert_eq!(with_supported_precision(event.clone(), ability.user_only), Ok(event));
    }
}
