//! Files behind the addresses of a recording: debug files, changed and missing files, other roots,
//! just-in-time code, the kernel's page; and files with random damage.

use super::binutils::{C, addr2line, at, functions, hex, instructions, module};
use super::symbols::check_lines;
use crate::support::files::{Folder, shared, text};
use crate::support::quiet::busy;
use crate::support::tools::{build, tool};
use isa::elf::NoLayout;
use isa::flow::Memory as _;
use pmu::records::format::SampleFormat;
use profile::address_space::AddressSpaces;
use profile::event::Event;
use profile::files::{Gap, SearchPaths, Unreadable};
use profile::hot::{Filter, Profile};
use profile::module::{Module, ModuleKind};
use profile::record::{Mapping, Record};
use profile::recording::{About, Recording};
use profile::sample;
use profile::symbols::{Origin, Symbols};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// A program without debug information, its debug file elsewhere: by link or by build-id.
#[test]
fn separate_debug_files_are_found_by_link_and_by_build_id() {
    let folder = Folder::new();
    let place = |name: &str| folder.path().join(name);
    let args = ["-O2", "-g", "-Wl,--build-id=0x0123456789abcdef"];
    let Some(program) = build(folder.path(), "gcc", C, &args, "whole") else { return };
    let Some(addresses) = instructions(&program, "helper") else { return };
    let Some(expected) = addr2line(&program, &addresses) else { return };
    let debug = place("a.debug");
    let keep = ["--only-keep-debug", "--compress-debug-sections", text(&program), text(&debug)];
    let Some(_) = tool("objcopy", &keep) else { return };
    let bare = place("bare");
    tool("strip", &["-o", text(&bare), text(&program)]);
    let linked = place("linked");
    let link = format!("--add-gnu-debuglink={}", text(&debug));
    tool("objcopy", &[&link, text(&bare), text(&linked)]);
    let check = |symbols: &mut Symbols, program: &Path| {
        let helper = symbols.function(&module(program), at(addresses[0])).unwrap();
        assert_eq!(helper.name, "helper");
        check_lines(symbols, &module(program), &addresses, &expected);
    };
    let nowhere = SearchPaths { debug: vec![place("none")], ..SearchPaths::default() };
    check(&mut Symbols::new(nowhere.clone()), &linked);

    let named = |symbols: &mut Symbols, program: &Path| {
        symbols.function(&module(program), at(addresses[0])).unwrap().named
    };
    assert!(!named(&mut Symbols::new(nowhere.clone()), &bare), "nothing leads to the debug file");

    let by_id = place("debug/.build-id/01");
    fs::create_dir_all(&by_id).unwrap();
    fs::copy(&debug, by_id.join("23456789abcdef.debug")).unwrap();
    let search = SearchPaths { debug: vec![place("debug")], ..SearchPaths::default() };
    check(&mut Symbols::new(search), &bare);

    // Another file under the link's name: its checksum tells.
    let mut changed = fs::read(&debug).unwrap();
    changed.push(0);
    fs::write(&debug, changed).unwrap();
    assert!(!named(&mut Symbols::new(nowhere), &linked));
}

#[test]
fn a_changed_or_missing_file_gives_no_names() {
    let folder = Folder::new();
    let args = ["-O1", "-Wl,--build-id=0xaabbccdd"];
    let Some(program) = build(folder.path(), "gcc", C, &args, "a") else { return };
    let start = *functions(&program).unwrap().keys().next().unwrap();
    let with = |id: Option<Vec<u8>>, path: &str| Module {
        build_id: id,
        path: path.into(),
        ..module(&program)
    };
    let path = text(&program);
    let mut symbols = Symbols::default();
    let mut check = |module: &Module, gap: Option<Gap>| {
        assert_eq!(symbols.gap(module), gap);
        assert_eq!(symbols.function(module, at(start)).is_some(), gap.is_none());
        assert_eq!(symbols.code(module, start, start + 1).err(), gap);
        assert_eq!(symbols.lines(module, at(start)), []);
    };
    // As perf pads build-ids.
    let mut padded = vec![0xaa, 0xbb, 0xcc, 0xdd];
    padded.resize(20, 0);
    check(&with(Some(padded), path), None);
    let other = with(Some(vec![1, 2, 3, 4]), path);
    check(&other, Some(Gap::Changed("01020304".into(), "aabbccdd".into())));
    let gone = with(None, "/no/such/program");
    check(&gone, Some(Gap::NoFile("/no/such/program".into())));
    let deleted = format!("{path} (deleted)");
    check(&with(Some(vec![0xaa, 0xbb, 0xcc, 0xdd]), &deleted), None);
    check(&with(None, &deleted), Some(Gap::Changed("none".into(), "aabbccdd".into())));
    check(&with(None, "/etc/passwd/x"), Some(Gap::NoFile("/etc/passwd/x".into())));
    for (path, what) in [("/dev/zero", "device"), ("/", "folder")] {
        let why = format!("it is a {what}, not a regular file");
        check(&with(None, path), Some(Gap::Unreadable(std::io::Error::other(why).into())));
    }
    check(&with(None, "/etc/passwd"), Some(Gap::Unreadable(Unreadable::Elf(NoLayout::NoElf))));
}

#[test]
fn programs_are_found_below_the_roots_first() {
    let folder = Folder::new();
    let args = ["-O1", "-Wl,--build-id=0xaabbccdd"];
    let Some(program) = build(folder.path(), "gcc", C, &args, "a") else { return };
    let start = *functions(&program).unwrap().keys().next().unwrap();
    let search = SearchPaths { roots: vec![folder.path().into()], ..SearchPaths::default() };
    for path in ["/a", "/usr/lib/elsewhere/a"] {
        let elsewhere = Module { path: path.into(), ..module(&program) };
        assert!(Symbols::new(search.clone()).function(&elsewhere, at(start)).is_some());
        assert!(Symbols::default().function(&elsewhere, at(start)).is_none());
    }
}

#[test]
fn functions_of_a_jit_come_from_its_map_file() {
    let folder = Folder::new();
    folder.write("tmp/perf-77.map", "7f0000001000 80 run:loop\n");
    let search = SearchPaths { roots: vec![folder.path().into()], ..SearchPaths::default() };
    let jit = |pid| Module {
        path: "//anon".into(),
        kind: ModuleKind::Anonymous,
        pid: Some(pid),
        ..Module::default()
    };
    let mut symbols =
        Symbols::new(search).with_origin(Origin { host: Some("?".into()), ..Origin::default() });
    assert_eq!(symbols.function(&jit(77), at(0x7f0000001010)).unwrap().name, "run:loop");
    assert_eq!(symbols.function(&jit(77), at(0x7f0000001080)), None);
    assert_eq!(symbols.gap(&jit(78)), Some(Gap::NoFile("/tmp/perf-78.map".into())));
}

/// Everyone can write to `/tmp`. The number is of no process: they end at 2^22 (proc_sys_kernel(5)).
#[test]
fn functions_of_a_jit_are_named_by_the_owner_of_its_process_only() {
    need!(nix::unistd::geteuid().is_root(), "only root gives files away");
    let (pid, path) = (u32::MAX - 7, format!("/tmp/perf-{}.map", u32::MAX - 7));
    let jit = Module {
        path: "//anon".into(),
        kind: ModuleKind::Anonymous,
        pid: Some(pid),
        ..Module::default()
    };
    let name = || {
        let mut symbols = Symbols::default();
        let found = symbols.function(&jit, at(0x1010)).map(|function| function.name);
        found.ok_or_else(|| symbols.gap(&jit).expect("a reason").to_string())
    };
    fs::write(&path, "1000 80 run:loop\n").unwrap();
    let own = name();
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    let foreign = name();
    fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path[..], nix::sys::stat::Mode::S_IRWXU).unwrap();
    let pipe = name();
    fs::remove_file(&path).unwrap();
    assert_eq!(own.unwrap(), "run:loop");
    let why = foreign.unwrap_err();
    assert!(why.contains("user"), "{why}");
    let why = pipe.unwrap_err();
    assert!(why.contains("pipe"), "{why}");
}

/// A link names a file, not a path: it does not lead out of the program's folder.
#[test]
fn a_debug_link_with_a_path_is_not_followed() {
    let folder = Folder::new();
    let place = |name: &str| folder.path().join(name);
    let Some(program) = build(folder.path(), "gcc", C, &["-O2", "-g"], "whole") else { return };
    let Some(addresses) = instructions(&program, "helper") else { return };
    let debug = place("a.debug");
    let Some(_) = tool("objcopy", &["--only-keep-debug", text(&program), text(&debug)]) else {
        return;
    };
    let link = format!("--add-gnu-debuglink={}", text(&debug));
    fs::create_dir(place("inside")).unwrap();
    let bare = place("inside/bare");
    tool("strip", &["-o", text(&bare), text(&program)]);
    tool("objcopy", &[&link, text(&bare)]);
    fs::rename(&debug, place("a.db")).unwrap();
    let mut bytes = fs::read(&bare).unwrap();
    let at_name = bytes.windows(8).position(|name| name == b"a.debug\0").expect("the link");
    bytes[at_name..at_name + 8].copy_from_slice(b"../a.db\0");
    fs::write(&bare, bytes).unwrap();
    let search = SearchPaths { debug: vec![place("none")], ..SearchPaths::default() };
    let found = Symbols::new(search.clone()).function(&module(&bare), at(addresses[0])).unwrap();
    assert!(!found.named, "{found:?}");
}

#[test]
fn the_running_kernels_page_has_functions() {
    let vdso = Module { path: "[vdso]".into(), kind: ModuleKind::Vdso, ..Module::default() };
    let live = Origin { live: true, ..Origin::default() };
    let mut symbols = Symbols::default().with_origin(live.clone());
    if symbols.gap(&vdso).is_some() {
        eprintln!("skipped: no vdso here");
        return;
    }
    let names: Vec<String> = (0..0x4000)
        .filter_map(|address| symbols.function_at(&vdso, address).map(|f| f.name.clone()))
        .collect();
    // vdso(7): what every x86-64 kernel exports, under either name.
    if cfg!(target_arch = "x86_64") {
        assert!(names.iter().any(|name| name.ends_with("clock_gettime")));
    }
    let other = Module { build_id: Some(vec![1; 20]), ..vdso };
    assert!(matches!(Symbols::default().with_origin(live).gap(&other), Some(Gap::Changed(..))));
}

/// notes/recordings.md: the executable segment has offset 0x740 and address 0x1740, so addresses
/// are not offsets; the main back edge is at 0x1a6e. The mapping is that of `perf script
/// --show-mmap-events`, the function of `nm`.
#[test]
fn file_offsets_are_mapped_to_addresses_by_the_program_headers() {
    let Some(recordings) = shared("recordings/autofdo") else { return };
    let mut build_id = hex("572ac72487ae1966").to_be_bytes().to_vec();
    build_id.resize(20, 0);
    let search = SearchPaths { roots: vec![recordings], ..SearchPaths::default() };
    let path = "/build/propeller_sample_1.bin".to_owned();
    let mut spaces = AddressSpaces::new(search.clone(), &[(path.clone(), build_id)]);
    let mapping = Mapping {
        pid: 5595,
        tid: 5595,
        start: 0x5629ec742000,
        length: 0x1000,
        path,
        ..Mapping::default()
    };
    spaces.apply(&Record::Map { time: None, mapping: mapping.into() });
    let place = spaces.resolve(5595, 0x5629ec742a6e, Some(true)).unwrap();
    assert_eq!(place.address, 0x1a6e);
    let main = Symbols::new(search).function(&spaces.modules.all[place.module], place).unwrap();
    assert_eq!((main.name.as_str(), main.start), ("main", 0x1920));
}

#[test]
fn the_symbols_may_be_used_on_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Symbols>();
    is_send::<AddressSpaces>();
}

/// Everything that can be asked of a file, at a few hundred addresses.
fn use_all(data: &[u8]) {
    let folder = Folder::new();
    let path = folder.path().join("mutated");
    fs::write(&path, data).unwrap();
    let search = SearchPaths { debug: vec![folder.path().into()], ..SearchPaths::default() };
    let (mut symbols, module) = (Symbols::new(search), module(&path));
    let _ = symbols.gap(&module);
    for address in (0..0x4000).step_by(61).chain([u64::MAX, 1 << 63]) {
        let _ = symbols.function(&module, at(address));
        let _ = symbols.lines(&module, at(address));
        let _ = symbols.code(&module, address, address.saturating_add(16));
        if let Ok(image) = symbols.image(&module) {
            let _ = image.read(address, 24);
        }
    }
    let mut spaces = AddressSpaces::new(SearchPaths::default(), &[]);
    let mapping =
        Mapping { pid: 1, length: u64::MAX, path: text(&path).into(), ..Mapping::default() };
    spaces.apply(&Record::Map { time: None, mapping: mapping.into() });
    let _ = spaces.resolve(1, 0x1200, Some(true));
    unwind_all(&path);
}

/// Call chains from copies of the stack, from a few hundred addresses of a file.
fn unwind_all(path: &Path) {
    const START: u64 = 0x7000_0000_0000;
    let mapping = Mapping {
        pid: 1,
        tid: 1,
        start: START,
        length: 0x4000,
        path: text(path).into(),
        ..Mapping::default()
    };
    let mut records = vec![Record::Map { time: None, mapping: mapping.into() }];
    // PERF_SAMPLE_IP, TID, CALLCHAIN, REGS_USER, STACK_USER; registers as perf numbers those of x86-64.
    let format = SampleFormat {
        sample_type: 1 | 1 << 1 | 1 << 5 | 1 << 12 | 1 << 13,
        regs_user: 0xff_01ff,
        stack_user: 512,
        ..SampleFormat::default()
    };
    for address in (0x1000..0x2000).step_by(13) {
        let mut words = vec![START + address, 1 << 32 | 1, 0, 2];
        let stack = 0x7fff_0000_0000_u64;
        words.extend((0..24).filter(|n| 0xff_01ff >> n & 1 == 1).map(|number| match number {
            8 => START + address,
            _ => stack + number * 16,
        }));
        words.push(512);
        words.extend(
            (0..64).map(|n| if n % 2 == 0 { stack + 8 * n + 64 } else { START + 0x1000 + 7 * n }),
        );
        words.push(512);
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let sample = sample::decode(&body, 2, &format).expect("a sample");
        assert_eq!(sample.stack.len(), 512);
        records.push(Record::Sample { event: 0, sample });
    }
    let about = About {
        events: vec![Event { format, ..Event::default() }],
        architecture: Some("x86_64".into()),
        ..About::default()
    };
    let recording = Recording { about, records };
    let filter = Filter { chains: true, ..Filter::default() };
    let mut profile = Profile::new(&recording, &filter, SearchPaths::default()).expect("a profile");
    assert!(
        profile.stacks().iter().all(|stack| !stack.frames.is_empty() && stack.frames.len() <= 4200)
    );
}

#[test]
fn no_damage_to_a_file_breaks_anything() {
    let _busy = busy();
    let folder = Folder::new();
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(80) };
    let all = [["-O1", "-g", "-gz=none"], ["-O1", "-g", "-gz=zlib"]];
    for args in all {
        let Some(program) = build(folder.path(), "gcc", C, &args, "a") else { return };
        let data = fs::read(program).unwrap();
        let size = data.len();
        // Headers at both ends are hit more often than chance would.
        let place = prop_oneof![0..size, 0..0x400usize, size - 0x900..size];
        let changes = prop::collection::vec((place, any::<u8>()), 0..40);
        proptest!(config.clone(), |(changes in changes, cut in 0..size * 3)| {
            let mut data = data.clone();
            for (at, byte) in changes {
                data[at] = byte;
            }
            data.truncate(cut);
            use_all(&data);
        });
    }
}
