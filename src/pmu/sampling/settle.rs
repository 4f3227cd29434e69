//! What this kernel and these rights allow, tried on ourselves before anything is recorded.

use super::SampledEvent;
use crate::machine::Encoding;
use crate::perf::{FORMAT_LOST, Opening, Sampled, Whose, software};
use crate::records::format::{SampleFormat, field};
use nix::errno::Errno;

/// `PERF_COUNT_SW_DUMMY`.
pub(super) const DUMMY: Encoding = software(9);

/// What sampling can do here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ability {
    /// Kernel mode may not be looked at.
    pub user_only: bool,
    /// Records of mappings carry build-ids.
    pub build_ids: bool,
    /// Events tell how many samples were lost.
    pub lost: bool,
}

/// An event on ourselves that is closed at once.
fn attempt(encoding: Encoding) -> Opening<'static> {
    Opening {
        encoding,
        precise: 0,
        rate: None,
        format: SampleFormat { sample_type: field::IP, ..SampleFormat::default() },
        whose: Whose::Task(0),
        cpu: None,
        inherit: false,
        user_only: true,
        enable_on_exec: false,
        enabled: false,
        build_ids: false,
        watermark: 0,
    }
}

/// Finds out what sampling can do here.
///
/// # Errors
/// The kernel's answer where it opens nothing at all.
pub fn ability() -> Result<Ability, Errno> {
    let least = attempt(DUMMY);
    Sampled::open(&least)?;
    let works = |opening: &Opening<'_>| Sampled::open(opening).is_ok();
    let lost = SampleFormat { read_format: FORMAT_LOST, ..least.format };
    Ok(Ability {
        user_only: !works(&Opening { user_only: false, ..least }),
        build_ids: works(&Opening { build_ids: true, ..least }),
        lost: works(&Opening { format: lost, ..least }),
    })
}

/// The event as precise as the kernel takes it, at most as `event` asks.
///
/// # Errors
/// The kernel's answer where it does not take it at all.
pub fn settle(mut event: SampledEvent, user_only: bool) -> Result<SampledEvent, Errno> {
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
    use crate::perf::Rate;

    #[test]
    fn cpu_clock_is_taken_where_perf_events_are() {
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
        assert_eq!(settle(event.clone(), ability.user_only), Ok(event));
    }
}
