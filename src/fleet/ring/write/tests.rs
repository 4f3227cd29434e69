//! Rings, window by window.

use super::*;
use crate::ring::{Defect, read};
use crate::window::{Host, SCHEMA};

/// A window that is told from others by its start; its host's name is hard to compress.
fn window(start_ms: i64) -> Window {
    let mut seed = start_ms as u64;
    let name = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + (seed >> 60) as u8)
    });
    Window {
        schema: SCHEMA.to_owned(),
        host: Host { name: name.take(16_000).collect(), ..Host::default() },
        start_ms,
        seconds: Some(1.0),
        busy_seconds: None,
        cost_seconds: None,
        lost: None,
        nodes: Vec::new(),
        functions: Vec::new(),
        blocks: Vec::new(),
        counts: Vec::new(),
        notes: Vec::new(),
    }
}

fn starts(folder: &Path) -> Vec<i64> {
    read(folder).unwrap().map(|window| window.unwrap().start_ms).collect()
}

fn used(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().map(|entry| room(entry.unwrap().metadata().unwrap().len())).sum()
}

#[test]
fn the_oldest_windows_make_room_whatever_the_clock_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut ring = Ring::open(folder.path(), LEAST).unwrap();
    for start in (0..20).rev() {
        ring.add(&window(start)).unwrap();
        assert!(used(folder.path()) <= LEAST);
    }
    let left = starts(folder.path());
    assert!(left.len() > 2, "{left:?}");
    assert!(left.windows(2).all(|pair| pair[0] == pair[1] + 1), "in order of writing: {left:?}");
    assert_eq!(left.last(), Some(&0));
}

#[test]
fn numbers_go_on_from_start_to_start_and_leftovers_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    for start in [5, 3] {
        fs::write(folder.path().join(name::unfinished(77)), "half").unwrap();
        let mut ring = Ring::open(folder.path(), 1 << 20).unwrap();
        assert!(!folder.path().join(name::unfinished(77)).exists());
        ring.add(&window(start)).unwrap();
    }
    assert_eq!(starts(folder.path()), [5, 3]);
}

#[test]
fn a_second_recorder_is_refused_until_the_first_ends() {
    let folder = tempfile::tempdir().unwrap();
    let first = Ring::open(folder.path(), 1 << 20).unwrap();
    let error = Ring::open(folder.path(), 1 << 20).unwrap_err();
    assert!(error.remedy().is_some());
    drop(first);
    Ring::open(folder.path(), 1 << 20).unwrap();
}

#[test]
fn a_folder_that_is_moved_or_removed_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("a/ring");
    let mut ring = Ring::open(&here, 1 << 20).unwrap();
    ring.add(&window(1)).unwrap();
    let moved = folder.path().join("moved");
    fs::rename(&here, &moved).unwrap();
    ring.add(&window(2)).unwrap();
    assert_eq!((starts(&moved), starts(&here)), (vec![1], vec![2]));
    fs::remove_dir_all(folder.path().join("a")).unwrap();
    ring.add(&window(3)).unwrap();
    assert_eq!(starts(&here), [3]);
    assert!(Ring::open(&here, 1 << 20).is_err(), "it is locked again");
}

#[test]
fn a_window_that_does_not_fit_is_dropped_and_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut ring = Ring::open(folder.path(), LEAST).unwrap();
    ring.add(&window(1)).unwrap();
    let mut large = window(2);
    large.notes = (0..20).map(|n| window(n).host.name).collect();
    assert!(matches!(ring.add(&large), Err(Dropped::TooLarge { .. })));
    ring.add(&window(3)).unwrap();
    assert_eq!(starts(folder.path()), [1, 3]);
}

#[test]
fn damage_is_found_at_every_byte_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut ring = Ring::open(folder.path(), 1 << 20).unwrap();
    let mut small = window(1);
    small.host.name = "host".to_owned();
    let path = ring.add(&small).unwrap();
    ring.add(&window(2)).unwrap();
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let found: Vec<_> = read(folder.path()).unwrap().collect();
        // Some bits of gzip mean nothing: the time, and those that fill the last byte.
        match &found[0] {
            Ok(first) => assert_eq!(*first, small, "byte {at}"),
            Err(first) => assert_eq!(first.path, path, "byte {at}"),
        }
        assert_eq!(found[1].as_ref().unwrap().start_ms, 2);
    }
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let first = read(folder.path()).unwrap().next().unwrap().unwrap_err();
        assert_eq!(first.defect, Defect::Cut, "{length} bytes");
    }
    fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    let first = read(folder.path()).unwrap().next().unwrap().unwrap_err();
    assert_eq!(first.defect, Defect::Garbled, "more bytes than a window");
}

#[test]
fn other_documents_are_no_windows() {
    let folder = tempfile::tempdir().unwrap();
    let mut ring = Ring::open(folder.path(), 1 << 20).unwrap();
    let path = ring.add(&window(1)).unwrap();
    let mut later = window(1);
    later.schema = "tdtool.window/2".to_owned();
    for (bytes, is_it) in [
        (encode(&later).unwrap(), true),
        (b"text".to_vec(), false),
        // Bytes that unpack to more than a window.
        (packed_zeros(), false),
    ] {
        fs::write(&path, bytes).unwrap();
        let defect = read(folder.path()).unwrap().next().unwrap().unwrap_err().defect;
        assert_eq!(matches!(defect, Defect::Schema(_)), is_it, "{defect:?}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let defect = read(folder.path()).unwrap().next().unwrap().unwrap_err().defect;
    assert!(matches!(defect, Defect::Unread(_)), "{defect:?}");
    drop(ring);
    let mut ring = Ring::open(folder.path(), LEAST).unwrap();
    for start_ms in 2..20 {
        ring.add(&window(start_ms)).expect("a folder in the way does not end it");
    }
}

fn packed_zeros() -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![0; 1 << 20];
    (0..=256).for_each(|_| packed.write_all(&zeros).unwrap());
    packed.finish().unwrap()
}
