//! Symbols of the running kernel, if it is the recorded one, and its vdso; where and when a recording was made.

use super::table::{Binding, Symbol, Table};
use crate::files::{Gap, Unreadable, hexadecimal, same_id};
use crate::module::{Module, ModuleKind};
use pmu::machine::Root;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};

/// Where and when a recording was made: decides whether the kernel, vdso and perf map files of this
/// machine apply to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Whether it was made on this host with the kernel release that runs now.
    pub live: bool,
    /// Whether it was made since the last boot: kernel addresses are the same now.
    pub this_boot: bool,
    /// Kernel release (`uname -r`), if known.
    pub kernel: Option<String>,
    /// Host name, if known.
    pub host: Option<String>,
    /// Architecture (`uname -m`), if known.
    pub architecture: Option<String>,
}

/// Symbols of the kernel and its modules at their current addresses.
#[derive(Debug)]
pub(super) struct Kernel {
    symbols: Vec<KernelSymbol>,
}

#[derive(Debug, Clone)]
struct KernelSymbol {
    address: u64,
    binding: Binding,
    name: Box<str>,
    /// Kernel module, or another name in brackets (`bpf`).
    owner: Option<Box<str>>,
}

/// Page size: the last function before a hole ends with its page.
const PAGE: u64 = 4096;
/// A distance to the next symbol larger than any function.
const HOLE: u64 = 1 << 20;
/// Upper bound of the vdso's size, which is a few pages.
const LARGEST_VDSO: u64 = 1 << 20;

impl Kernel {
    /// Reads `/proc/kallsyms`.
    ///
    /// # Errors
    /// It cannot be read, or its addresses are hidden.
    pub fn read(root: &Root) -> Result<Self, Gap> {
        Self::of(&root.text("proc/kallsyms").unwrap_or_default())
    }

    /// Parses the text of `/proc/kallsyms`.
    ///
    /// # Errors
    /// Its addresses are hidden.
    pub fn of(text: &str) -> Result<Self, Gap> {
        let mut symbols: Vec<KernelSymbol> = text.lines().filter_map(line).collect();
        if symbols.iter().all(|symbol| symbol.address == 0) {
            return Err(Gap::Unreadable(Unreadable::Hidden));
        }
        symbols.sort_by_key(|symbol| symbol.address);
        Ok(Self { symbols })
    }

    /// The functions of `module` at their addresses when it was recorded.
    ///
    /// # Errors
    /// The addresses of that time are unknown.
    pub fn table(&self, module: &Module, root: &Root, this_boot: bool) -> Result<Table, Gap> {
        let shift = self.shift(module, root, this_boot)?;
        let name = module_name(&module.path);
        let belongs = |owner: Option<&str>| match (module.kind, owner) {
            (ModuleKind::Kernel, None) => true,
            // Compiled by the kernel: BPF programs and trampolines.
            (ModuleKind::Kernel, Some(owner)) => owner == "bpf" || owner.starts_with("__builtin"),
            (_, owner) => owner == Some(name.as_str()),
        };
        let mut symbols = Vec::new();
        for (index, symbol) in self.symbols.iter().enumerate() {
            if !belongs(symbol.owner.as_deref()) {
                continue;
            }
            let end = self.end(index);
            symbols.push(Symbol {
                start: symbol.address.wrapping_sub(shift),
                size: end.saturating_sub(symbol.address),
                binding: symbol.binding,
                label: false,
                name: symbol.name.clone(),
            });
        }
        Ok(Table::new(symbols, Vec::new(), Vec::new()))
    }

    /// The end of a function: the next one, since kallsyms has no sizes.
    fn end(&self, index: usize) -> u64 {
        let start = self.symbols[index].address;
        let after = self.symbols.partition_point(|symbol| symbol.address <= start);
        let page_end = (start | (PAGE - 1)).saturating_add(1);
        match self.symbols.get(after) {
            Some(next) if next.address - start <= HOLE => next.address,
            _ => page_end,
        }
    }

    /// The current address of the module minus the recorded one.
    fn shift(&self, module: &Module, root: &Root, this_boot: bool) -> Result<u64, Gap> {
        let moved = |recorded: u64, now: Option<u64>| match now {
            Some(now) => Ok(now.wrapping_sub(recorded)),
            None => Err(Gap::Unreadable(Unreadable::NotLoaded)),
        };
        match &module.reference {
            Some((symbol, recorded)) if module.kind == ModuleKind::Kernel => {
                moved(*recorded, self.address_of(symbol))
            }
            Some((_, recorded)) => moved(*recorded, loaded_at(&module_name(&module.path), root)),
            None if this_boot => Ok(0),
            None => Err(Gap::Unreadable(Unreadable::NoReference)),
        }
    }

    fn address_of(&self, name: &str) -> Option<u64> {
        self.symbols.iter().find(|s| &*s.name == name && s.owner.is_none()).map(|s| s.address)
    }
}

/// Parses a line: address, type (lower case for local symbols), name, module in brackets; `None` for
/// symbols that are not code.
fn line(line: &str) -> Option<KernelSymbol> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let binding = match words.next()? {
        "T" => Binding::Global,
        "t" => Binding::Local,
        "W" | "w" => Binding::Weak,
        _ => return None,
    };
    let name = words.next()?.into();
    let owner = words.next().and_then(|w| w.strip_prefix('[')?.strip_suffix(']')).map(Box::from);
    Some(KernelSymbol { address, binding, name, owner })
}

/// The kernel's name, with underscores, for `[name]` or `/lib/modules/…/name.ko.xz`.
fn module_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path).trim_matches(['[', ']']);
    let name = name.split(".ko").next().unwrap_or(name);
    name.replace('-', "_")
}

/// Address of a kernel module: the first `0x…` word of its line in `/proc/modules`.
fn loaded_at(name: &str, root: &Root) -> Option<u64> {
    let modules = root.text("proc/modules")?;
    let line = modules.lines().find(|line| line.split(' ').next() == Some(name))?;
    let address = line.split(' ').find_map(|word| word.strip_prefix("0x"))?;
    u64::from_str_radix(address, 16).ok().filter(|&address| address != 0)
}

/// Checks that the running kernel is the recorded one: by build-id, else by release and host.
///
/// # Errors
/// The kernels differ, or may differ.
pub(super) fn is_recorded(
    build_id: Option<&[u8]>,
    origin: &Origin,
    root: &Root,
) -> Result<(), Gap> {
    if origin.this_boot {
        return Ok(());
    }
    let running = if root.is_system() { pmu::build_id::of_kernel() } else { None };
    if let (Some(recorded), Some(running)) = (build_id, running) {
        let differs = || Gap::Changed(hexadecimal(recorded), hexadecimal(&running));
        return same_id(recorded, &running).then_some(()).ok_or_else(differs);
    }
    if is_this_machine(origin, root) {
        return Ok(());
    }
    let release = root.text("proc/sys/kernel/osrelease").unwrap_or_default();
    let recorded = origin.kernel.clone().unwrap_or_else(|| "unknown".into());
    Err(Gap::OtherKernel(recorded, release))
}

/// Whether the recording is from this host and kernel release.
pub(super) fn is_this_machine(origin: &Origin, root: &Root) -> bool {
    let same =
        |file: &str, recorded: &Option<String>| recorded.is_some() && root.text(file) == *recorded;
    origin.live
        || (same("proc/sys/kernel/osrelease", &origin.kernel)
            && same("proc/sys/kernel/hostname", &origin.host))
}

/// The vdso of this process.
pub(super) fn vdso() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let size = u64::from_str_radix(end, 16).ok()?.checked_sub(start)?;
    let mut memory = fs::File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    memory.take(size.min(LARGEST_VDSO)).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            name(&mut table, 0xffffffff82001000),
            None,
            "after the page of the last function"
        );
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
}
