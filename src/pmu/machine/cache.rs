//! The first-level caches.

use super::root::Root;
use tma::Cache;

/// The first-level caches of data and of code.
pub(super) fn first_level(root: &Root) -> (Option<Cache>, Option<Cache>) {
    (cache(root, "Data"), cache(root, "Instruction"))
}

/// The first-level cache of a kind (`Data`, `Instruction`) of CPU 0.
fn cache(root: &Root, kind: &str) -> Option<Cache> {
    let folders = (0..8).map(|i| format!("sys/devices/system/cpu/cpu0/cache/index{i}"));
    for folder in folders {
        let is = |file: &str, value: &str| {
            root.text(format!("{folder}/{file}")).is_some_and(|text| text == value)
        };
        let number = |file: &str| root.number::<usize>(format!("{folder}/{file}"));
        if is("level", "1")
            && is("type", kind)
            && let (Some(ways), Some(sets)) =
                (number("ways_of_associativity"), number("number_of_sets"))
            && ways > 0
            && sets > 0
        {
            return Some(Cache { ways, sets });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_read_by_kind_and_level() {
        let folder = tempfile::tempdir().unwrap();
        let write = |index: usize, file: &str, text: &str| {
            let place =
                folder.path().join(format!("sys/devices/system/cpu/cpu0/cache/index{index}"));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join(file), format!("{text}\n")).unwrap();
        };
        for (index, kind, ways) in [(0, "Data", "12"), (1, "Instruction", "8")] {
            write(index, "level", "1");
            write(index, "type", kind);
            write(index, "ways_of_associativity", ways);
            write(index, "number_of_sets", "64");
        }
        let root = Root::at(folder.path());
        assert_eq!(cache(&root, "Data"), Some(Cache { ways: 12, sets: 64 }));
        assert_eq!(cache(&root, "Instruction").map(Cache::bytes), Some(32 * 1024));
        let nothing = Root::at(folder.path().join("absent"));
        assert_eq!(cache(&nothing, "Data"), None);
    }
}
