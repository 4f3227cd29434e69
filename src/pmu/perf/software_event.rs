//! Encodings of software events.

use crate::machine::Encoding;

/// The dummy event: counts nothing, but has the times it was enabled and scheduled.
pub const DUMMY: Encoding = software(9);

/// A software event of linux/perf_event.h by its number.
pub const fn software(number: u64) -> Encoding {
    const PERF_TYPE_SOFTWARE: u32 = 1;
    let (config1, config2) = (0, 0);
    let (user_only, kernel_only) = (false, false);
    Encoding { kind: PERF_TYPE_SOFTWARE, config: number, config1, config2, user_only, kernel_only }
}
