use super::*;

/// As `/proc/kallsyms` and `/proc/modules` look (proc(5)), addresses made up.
const KALLSYMS: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t helper
ffffffff81000100 W helper_alias
ffffffff81000180 T entry
ffffffff82000000 D data
ffffffffc0100000 t module_start\t[fast_fs]
ffffffffc0100040 t module_end\t[fast_fs]
ffffffffc0200000 t bpf_prog_1234_hook\t[bpf]
not a line
";
const MODULES: &str =
    "other 1 0 - Live 0xffffffffc0000000\nfast_fs 4096 1 - Live 0xffffffffc0100000\n";

fn root(kallsyms: &str) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let proc = folder.path().join("proc/sys/kernel");
    fs::create_dir_all(&proc).unwrap();
    fs::write(folder.path().join("proc/kallsyms"), kallsyms).unwrap();
    fs::write(folder.path().join("proc/modules"), MODULES).unwrap();
    fs::write(proc.join("osrelease"), "6.1.0\n").unwrap();
    fs::write(proc.join("hostname"), "box\n").unwrap();
    let root = Root::at(folder.path());
    (folder, root)
}

fn module(path: &str, kind: ModuleKind, reference: Option<(&str, u64)>) -> Module {
    let reference = reference.map(|(name, address)| (name.to_owned(), address));
    Module { path: path.into(), kind, reference, ..Module::default() }
}

fn name(table: &mut Table, address: u64) -> Option<String> {
    table.function(address).map(|function| function.name.clone())
}

#[test]
fn kernel_symbols_are_shifted_to_the_recorded_addresses() {
    let (_folder, root) = root(KALLSYMS);
    let kernel = Kernel::read(&root).unwrap();
    // Rebooted since: it was 0x1000000 above its current address.
    let recorded =
        module("[kernel.kallsyms]", ModuleKind::Kernel, Some(("_text", 0xffffffff82000000)));
    let mut table = kernel.table(&recorded, &root, false).unwrap();
    assert_eq!(name(&mut table, 0xffffffff82000110).as_deref(), Some("helper"));
    let entry = table.function(0xffffffff82000190).unwrap();
    assert_eq!((entry.start, entry.end), (0xffffffff82000180, 0xffffffff82001000));
    assert_eq!(name(&mut table, 0xffffffff82001000), None, "after the page of the last function");
    assert_eq!(name(&mut table, 0xffffffffc1200010).as_deref(), Some("bpf_prog_1234_hook"));
    assert_eq!(name(&mut table, 0xffffffffc1100010), None, "of a module");
}

#[test]
fn a_kernel_module_is_found_by_its_name() {
    let (_folder, root) = root(KALLSYMS);
    let kernel = Kernel::read(&root).unwrap();
    for path in ["[fast_fs]", "/lib/modules/6.1.0/kernel/fast-fs.ko.xz"] {
        let recorded = module(path, ModuleKind::KernelModule, Some(("", 0xffffffffc0300000)));
        let mut table = kernel.table(&recorded, &root, false).unwrap();
        assert_eq!(name(&mut table, 0xffffffffc0300041).as_deref(), Some("module_end"));
    }
    let absent = module("[gone]", ModuleKind::KernelModule, Some(("", 0xffffffffc0300000)));
    assert!(kernel.table(&absent, &root, true).is_err());
}

#[test]
fn hidden_addresses_and_an_unknown_place_are_gaps() {
    let hidden = "0000000000000000 T _text\n0000000000000000 T entry\n";
    let (_folder, hidden) = root(hidden);
    assert!(matches!(Kernel::read(&hidden), Err(Gap::Unreadable(_))));
    let (_folder, root) = root(KALLSYMS);
    let kernel = Kernel::read(&root).unwrap();
    let nowhere = module("[kernel.kallsyms]", ModuleKind::Kernel, None);
    assert!(kernel.table(&nowhere, &root, false).is_err());
    let mut live = kernel.table(&nowhere, &root, true).unwrap();
    assert_eq!(name(&mut live, 0xffffffff81000001).as_deref(), Some("_stext"));
}

#[test]
fn another_kernel_is_not_taken_for_the_recorded_one() {
    let (_folder, root) = root(KALLSYMS);
    let origin = |kernel: &str, host: &str| Origin {
        live: false,
        this_boot: false,
        kernel: Some(kernel.into()),
        host: Some(host.into()),
        architecture: None,
    };
    assert_eq!(is_recorded(None, &origin("6.1.0", "box"), &root), Ok(()));
    let other = is_recorded(None, &origin("5.10", "box"), &root);
    assert_eq!(other, Err(Gap::OtherKernel("5.10".into(), "6.1.0".into())));
    assert!(is_recorded(None, &origin("6.1.0", "elsewhere"), &root).is_err());
    assert!(is_recorded(None, &Origin::default(), &root).is_err());
}
