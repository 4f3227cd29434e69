//! Recordings with random damage: never a panic, an endless loop, or more than there is.
//!
//! Real recordings of `../shared` where it exists, and made ones.

use super::made;
use crate::fuzz::recordings;
use crate::support::files::shared;
use profile::files::{Gap, SearchPaths};
use profile::hot::{Filter, Profile};
use profile::perfdata::parse;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Recordings small enough to be read thousands of times.
static WHOLE: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let records = made::records();
    let mut all = vec![made::file("x86_64", &records), made::stream(&records)];
    for name in [
        "quipper/perf.data.group_desc-4.14",
        "quipper/perf.data.branch-4.14",
        "quipper/perf.data.lost_samples-4.4",
        "quipper/perf.data.piped.corrupted.zero_size_sample-3.2",
        "gematria/simple_x86_elf_object.perf.data",
    ] {
        all.extend(shared(&format!("recordings/{name}")).map(|path| fs::read(path).unwrap()));
    }
    all
});

/// Values that sizes and numbers go wrong by.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0_u32..64).prop_map(|bit| 1 << bit),
        0_u64..200,
        Just(u64::MAX),
        Just(u64::MAX - 7),
    ]
}

/// `/bin/sort` of this machine says nothing of the one that was recorded on an Arm machine.
#[test]
fn a_recording_of_another_processor_is_not_annotated_with_programs_of_this_one() {
    let there = cfg!(target_arch = "x86_64") && Path::new("/bin/sort").exists();
    need!(there, "this machine is no x86-64 with /bin/sort");
    let recording = parse(&made::file("aarch64", &made::records()), "made").unwrap();
    let mut profile =
        Profile::new(&recording, &Filter::default(), SearchPaths::default()).expect("read");
    let hot = &profile.functions[0];
    assert_eq!(hot.module, "sort");
    assert!(matches!(hot.gap, Some(Gap::OtherProcessor(_))), "{hot:?}");
    let notes = profile.annotate(0).notes.concat();
    assert!(notes.contains("unavailable"), "{notes}");
    assert!(profile.blocks(5).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    /// Words and bytes of a recording changed, its end cut off.
    #[test]
    fn no_damage_breaks_the_reader(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<u32>(), any::<bool>(), value(), 1_usize..9), 1..8),
        keep in prop_oneof![3 => Just(u32::MAX), 1 => any::<u32>()],
    ) {
        let mut data = WHOLE[which.index(WHOLE.len())].clone();
        for (at, early, value, bytes) in changes {
            // Half of them in the headers, where they do most.
            let at = at as usize % if early { data.len().min(600) } else { data.len() };
            let bytes = bytes.min(data.len() - at);
            data[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        if keep != u32::MAX {
            data.truncate(keep as usize % data.len());
        }
        recordings::feed(&data);
    }

    /// Whatever the bytes are.
    #[test]
    fn no_bytes_break_the_decoders(data in prop::collection::vec(any::<u8>(), 0..400)) {
        recordings::feed(&data);
    }

    /// Bodies of samples, of small numbers, which get further into them.
    #[test]
    fn no_small_numbers_break_the_decoders(
        head in any::<[u8; 24]>(),
        words in prop::collection::vec(value(), 0..60),
    ) {
        recordings::feed(&[head.to_vec(), made::words(&words)].concat());
    }
}
