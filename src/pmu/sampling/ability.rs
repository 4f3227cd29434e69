//! Sampling features of this kernel with these privileges, tested on this process before anything is recorded.

use crate::machine::Encoding;
use crate::perf::{DUMMY, FORMAT_LOST, Opening, Sampled, SampledTasks};
use crate::records::format::{SampleFormat, field};
use nix::errno::Errno;

/// Sampling features of this kernel with these privileges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ability {
    /// Kernel mode may not be sampled.
    pub user_only: bool,
    /// Records of mappings carry build-ids.
    pub build_ids: bool,
    /// Events count lost samples.
    pub lost: bool,
}

/// An event on this process, to be closed at once.
pub(super) fn attempt(encoding: Encoding) -> Opening<'static> {
    Opening {
        encoding,
        precise: 0,
        rate: None,
        format: SampleFormat { sample_type: field::IP, ..SampleFormat::default() },
        tasks: SampledTasks::Task(0),
        cpu: None,
        inherit: false,
        user_only: true,
        enable_on_exec: false,
        enabled: false,
        build_ids: false,
        watermark: 0,
    }
}

/// Tests what sampling can do.
///
/// # Errors
/// The kernel's answer if it opens no event at all.
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
