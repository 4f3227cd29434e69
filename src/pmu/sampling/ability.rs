//! What sampling this kernel and these privileges allow, tested on this process before anything is
//! recorded.

use crate::machine::Encoding;
use crate::perf::{DUMMY, FORMAT_LOST, Opening, Sampled, Whose};
use crate::records::format::{SampleFormat, field};
use nix::errno::Errno;

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
pub(super) fn attempt(encoding: Encoding) -> Opening<'static> {
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
