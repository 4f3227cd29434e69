//! Address spaces from records made by hand.

use super::*;

/// Start, length, offset and path of a mapping of process `pid`.
fn map(pid: u32, start: u64, length: u64, offset: u64, path: &str) -> Record {
    let mapping =
        Mapping { pid, tid: pid, start, length, offset, path: path.into(), ..Mapping::default() };
    Record::Map { time: Some(1), mapping: mapping.into() }
}

fn fork(time: u64, child: (u32, u32), parent: (u32, u32)) -> Record {
    Record::Fork { time: Some(time), child, parent }
}

fn exec(pid: u32, name: &str) -> Record {
    Record::Name { time: Some(1), pid, tid: pid, name: name.into(), exec: true }
}

/// Path and address of `ip` in user space.
fn at(spaces: &mut AddressSpaces, pid: u32, ip: u64) -> Option<(String, u64)> {
    let place = spaces.resolve(pid, ip, Some(true))?;
    Some((spaces.modules.all[place.module].path.clone(), place.address))
}

fn spaces(records: &[Record]) -> AddressSpaces {
    let mut spaces = AddressSpaces::default();
    records.iter().for_each(|record| spaces.apply(record));
    spaces
}

fn found(path: &str, address: u64) -> Option<(String, u64)> {
    Some((path.to_owned(), address))
}

// The files do not exist: addresses are offsets in them.

#[test]
fn a_mapping_replaces_what_it_overlaps() {
    let mut spaces = spaces(&[
        map(1, 0x1000, 0x4000, 0, "/no/whole"),
        map(1, 0x2000, 0x1000, 0x7000, "/no/middle"),
        map(1, 0x4800, 0x1000, 0, "/no/end"),
    ]);
    assert_eq!(at(&mut spaces, 1, 0x1fff), found("/no/whole", 0xfff));
    assert_eq!(at(&mut spaces, 1, 0x2010), found("/no/middle", 0x7010));
    assert_eq!(at(&mut spaces, 1, 0x3010), found("/no/whole", 0x2010));
    assert_eq!(at(&mut spaces, 1, 0x4801), found("/no/end", 1));
    assert_eq!(at(&mut spaces, 1, 0x5800), None);
    assert_eq!(at(&mut spaces, 1, 0xfff), None);
    assert_eq!(at(&mut spaces, 2, 0x1fff), None, "another process");
}

#[test]
fn a_child_has_its_parents_mappings_until_it_executes() {
    let mut spaces = spaces(&[
        map(1, 0x1000, 0x1000, 0, "/no/shell"),
        fork(5, (2, 2), (1, 1)),
        map(2, 0x5000, 0x1000, 0, "/no/plugin"),
        map(1, 0x8000, 0x1000, 0, "/no/later"),
    ]);
    assert_eq!(at(&mut spaces, 2, 0x1010), found("/no/shell", 0x10));
    assert_eq!(at(&mut spaces, 1, 0x5010), None, "mapped by the child alone");
    assert_eq!(at(&mut spaces, 2, 0x8010), None, "mapped by the parent afterwards");
    spaces.apply(&exec(2, "sort"));
    spaces.apply(&map(2, 0x1000, 0x100, 0, "/no/sort"));
    assert_eq!(at(&mut spaces, 2, 0x1010), found("/no/sort", 0x10));
    assert_eq!(at(&mut spaces, 2, 0x1110), None, "what was mapped before exec is gone");
    assert_eq!(at(&mut spaces, 1, 0x1010), found("/no/shell", 0x10));
    assert_eq!(spaces.thread_name(2, 2), Some("sort"));
}

#[test]
fn threads_share_a_space_and_have_names_of_their_own() {
    let name =
        |tid, name: &str| Record::Name { time: None, pid: 1, tid, name: name.into(), exec: false };
    let mut spaces = spaces(&[
        map(1, 0x1000, 0x1000, 0, "/no/a"),
        name(1, "server"),
        fork(5, (1, 7), (1, 1)),
        fork(5, (1, 8), (1, 1)),
        name(7, "worker"),
        map(1, 0x3000, 0x1000, 0, "/no/b"),
        Record::Exit { time: None, pid: 1, tid: 7 },
    ]);
    assert_eq!(at(&mut spaces, 1, 0x1010), found("/no/a", 0x10));
    assert_eq!(at(&mut spaces, 1, 0x3010), found("/no/b", 0x10));
    assert_eq!(spaces.thread_name(1, 7), Some("worker"));
    assert_eq!(spaces.thread_name(1, 8), Some("server"), "as the thread that started it");
    assert_eq!(spaces.thread_name(1, 9), None);
}

#[test]
fn a_reused_pid_is_another_process() {
    let exit = Record::Exit { time: Some(9), pid: 2, tid: 2 };
    let mut spaces = spaces(&[
        map(1, 0x1000, 0x1000, 0, "/no/shell"),
        fork(5, (2, 2), (1, 1)),
        map(2, 0x2000, 0x1000, 0, "/no/old"),
        exit.clone(),
    ]);
    assert_eq!(at(&mut spaces, 2, 0x2010), found("/no/old", 0x10), "samples may come late");
    spaces.apply(&fork(10, (2, 2), (1, 1)));
    assert_eq!(at(&mut spaces, 2, 0x2010), None);
    assert_eq!(at(&mut spaces, 2, 0x1010), found("/no/shell", 0x10));
    // The fork was lost: the first mapping after the end reveals it.
    spaces.apply(&exit);
    spaces.apply(&map(2, 0x9000, 0x1000, 0, "/no/new"));
    assert_eq!(at(&mut spaces, 2, 0x1010), None);
    assert_eq!(at(&mut spaces, 2, 0x9010), found("/no/new", 0x10));
}

#[test]
fn forks_synthesized_by_perf_inherit_nothing() {
    let records = [map(1, 0x1000, 0x1000, 0, "/no/init"), fork(0, (2, 2), (1, 1))];
    assert_eq!(at(&mut spaces(&records), 2, 0x1010), None);
}

#[test]
fn the_kernel_is_apart_and_guests_are_ignored() {
    let mut spaces = spaces(&[
        map(u32::MAX, 0xffffffff81000000, 0x1000000, 0xffffffff81000000, "[kernel.kallsyms]_text"),
        map(u32::MAX, 0xffffffffc0000000, 0x4000, 0, "[ext4]"),
        map(u32::MAX, 0xffffffff81000000, 0x1000000, 0, "[guest.kernel.kallsyms]"),
        map(1, 0xffffffffff600000, 0x1000, 0, "[vsyscall]"),
    ]);
    let mut kind = |ip, user| {
        let place = spaces.resolve(1, ip, user)?;
        assert_eq!(place.address, ip, "kernel addresses are addresses in memory");
        Some(spaces.modules.all[place.module].clone())
    };
    let kernel = kind(0xffffffff81000010, Some(false)).unwrap();
    assert_eq!((kernel.path.as_str(), kernel.kind), ("[kernel.kallsyms]", ModuleKind::Kernel));
    assert_eq!(kernel.reference, Some(("_text".into(), 0xffffffff81000000)));
    assert_eq!(kind(0xffffffffc0000010, None).unwrap().kind, ModuleKind::KernelModule);
    assert_eq!(kind(0xffffffff81000010, Some(true)), None);
    assert_eq!(kind(0xffffffffff600010, Some(true)).unwrap().path, "[vsyscall]");
    // Outside of all mappings: the same kernel, not another one.
    assert_eq!(kind(0xffff888000000000, None), Some(kernel));
    let nowhere = AddressSpaces::default().resolve(1, 0xffff888000000000, None);
    assert!(nowhere.is_some(), "the kernel without any mapping");
}

#[test]
fn memory_without_a_file_belongs_to_its_process() {
    let mut spaces = spaces(&[
        map(1, 0x1000, 0x1000, 0, "//anon"),
        map(2, 0x1000, 0x1000, 0, "//anon"),
        map(2, 0x3000, 0x1000, 0, "/memfd:jit (deleted)"),
        map(2, 0x5000, 0x1000, 0, "[vdso]"),
    ]);
    let one = spaces.resolve(1, 0x1010, Some(true)).unwrap();
    let two = spaces.resolve(2, 0x1010, Some(true)).unwrap();
    assert_eq!((one.address, two.address), (0x1010, 0x1010));
    assert_eq!(spaces.modules.all[one.module].pid, Some(1));
    assert_eq!(spaces.modules.all[two.module].pid, Some(2));
    assert_eq!(at(&mut spaces, 2, 0x3010), found("/memfd:jit (deleted)", 0x3010));
    assert_eq!(at(&mut spaces, 2, 0x5010), found("[vdso]", 0x10));
}

#[test]
fn build_ids_come_from_the_mapping_or_else_from_the_recordings_list() {
    let list = [("/no/a".to_owned(), vec![1]), ("/no/b".to_owned(), vec![2])];
    let mut spaces = AddressSpaces::new(SearchPaths::default(), &list);
    let mut with_id = map(1, 0x1000, 0x1000, 0, "/no/a");
    if let Record::Map { mapping, .. } = &mut with_id {
        mapping.build_id = Some(vec![9]);
    }
    spaces.apply(&with_id);
    spaces.apply(&map(1, 0x2000, 0x1000, 0, "/no/b"));
    let ids: Vec<_> = spaces.modules.all.iter().map(|m| m.build_id.clone()).collect();
    assert_eq!(ids, [Some(vec![9]), Some(vec![2])]);
}

#[test]
fn two_files_of_one_path_are_told_apart_by_what_their_mappings_say() {
    let list = [("/lib/c".to_owned(), vec![1]), ("/lib/c".to_owned(), vec![2])];
    let mut spaces = AddressSpaces::new(SearchPaths::default(), &list);
    let with = |pid, build_id: Option<Vec<u8>>, inode| {
        let path = "/lib/c".into();
        let length = 0x1000;
        let mapping =
            Mapping { pid, tid: pid, length, path, build_id, inode, ..Mapping::default() };
        Record::Map { time: Some(1), mapping: mapping.into() }
    };
    spaces.apply(&with(1, Some(vec![1]), None));
    spaces.apply(&with(2, Some(vec![2]), None));
    // The list names two: which this is of is not known.
    spaces.apply(&with(3, None, None));
    let ids: Vec<_> = spaces.modules.all.iter().map(|m| m.build_id.clone()).collect();
    assert_eq!(ids, [Some(vec![1]), Some(vec![2]), None]);
    // Without build-ids, by inode.
    let mut spaces = AddressSpaces::default();
    (1..4).for_each(|pid| spaces.apply(&with(pid, None, Some(u64::from(pid / 2) + 7))));
    let inodes: Vec<_> = spaces.modules.all.iter().map(|m| m.inode).collect();
    assert_eq!(inodes, [None, Some(8)], "the second and third process have the same file");
}

#[test]
fn code_in_place_of_a_programs_is_its_code_and_that_of_a_library_is_not() {
    let own = std::env::current_exe().unwrap();
    let layout = Layout::read(&*std::fs::read(&own).unwrap()).unwrap();
    let code = layout.segments.iter().find(|s| s.executable).unwrap().clone();
    let base = 0x5000_0000_0000;
    let start = (base + code.address) & !0xfff;
    let offset = code.offset & !0xfff;
    let path = own.to_str().unwrap();
    let moved = |first: &str| {
        let mut spaces = spaces(&[
            map(1, base, 0x1000, 0, first),
            map(1, start, code.file_size, offset, path),
            map(1, start + 0x1000, 0x1000, 0, "//anon"),
        ]);
        at(&mut spaces, 1, start + 0x1010)
    };
    let (found, address) = moved(path).unwrap();
    assert_eq!((found.as_str(), address), (path, start + 0x1010 - base));
    assert_eq!(moved("/no/other").unwrap().0, "//anon", "it may have been unmapped");
}

#[test]
fn impossible_mappings_change_nothing_and_break_nothing() {
    let mut spaces = spaces(&[
        map(1, 0x1000, 0, 0, "/no/empty"),
        map(1, u64::MAX - 0x10, u64::MAX, u64::MAX, "/no/end"),
        map(1, 0, u64::MAX, u64::MAX, "/no/all"),
        fork(5, (1, 1), (1, 1)),
        fork(5, (3, 3), (99, 99)),
    ]);
    assert_eq!(at(&mut spaces, 1, 0x1001), found("/no/all", 0x1000));
    assert_eq!(at(&mut spaces, 3, 0x1001), None);
}
