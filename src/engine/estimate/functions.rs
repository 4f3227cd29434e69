//! The hot functions of the samples: those whose code can be looked at, the kernel, and the others.

use crate::hot::hottest::{Hot, Hottest};
use profile::hot::Profile;
use std::path::PathBuf;

/// Functions are looked at until they hold this share of the samples in user code; …
const SHARE: f64 = 0.97;
/// … at most so many.
const MOST: usize = 60;

/// The functions of a profile.
pub(super) struct Functions {
    /// Those that are looked at.
    pub hot: Hottest,
    /// Share of the kernel.
    pub kernel: f64,
}

/// Chooses them.
pub(super) fn choose(profile: &mut Profile, exit: Option<pmu::Exit>, seconds: f64) -> Functions {
    let is_kernel = |of: &profile::hot::HotFunction| {
        of.path.starts_with("[kernel") || of.module.starts_with("[kernel")
    };
    let kernel =
        profile.functions.iter().filter(|of| is_kernel(of)).map(|of| of.share).sum::<f64>();
    let user = 1.0 - kernel;
    let mut hot = Hottest {
        asked: SHARE,
        event: profile.event.clone(),
        samples: profile.samples,
        seconds,
        exit,
        ..Hottest::default()
    };
    let mut held = 0.0;
    for number in 0..profile.functions.len() {
        if held >= SHARE * user || hot.functions.len() >= MOST {
            break;
        }
        let of = profile.functions[number].clone();
        if is_kernel(&of) {
            continue;
        }
        held += of.share;
        let blocks = profile.block_samples(number);
        hot.functions.push(Hot {
            path: PathBuf::from(&of.path),
            name: of.name,
            range: of.start..of.end,
            share: of.share,
            gap: of.gap.map(|gap| gap.to_string()),
            blocks,
        });
    }
    Functions { hot, kernel }
}
