//! The hot functions of the samples: those whose code can be analysed, the kernel, and the others.

use crate::hot::hottest::{Hot, Hottest, is_kernel, kernel_share};
use profile::hot::Profile;

/// Functions are analysed until they hold this share of the samples in user code.
const SHARE: f64 = 0.97;
/// The most functions that are analysed.
const MOST: usize = 60;

/// The functions of a profile.
pub(super) struct Functions {
    /// The functions to analyse.
    pub hot: Hottest,
    /// Share of the kernel.
    pub kernel: f64,
}

/// Chooses them.
pub(super) fn choose(profile: &mut Profile, exit: Option<pmu::Exit>, seconds: f64) -> Functions {
    let kernel = kernel_share(profile);
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
        if !is_kernel(&profile.functions[number]) {
            held += profile.functions[number].share;
            hot.functions.push(Hot::of(profile, number));
        }
    }
    Functions { hot, kernel }
}
