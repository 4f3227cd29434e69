//! Reads everything known of a module. Functions of just-in-time compilers are those of jitdumps, and of perf map
//! files, which have one `START SIZE NAME` per line, hexadecimal (tools/perf/Documentation/jit-interface.txt).

use super::{LoadedModule, Symbols};
use crate::files::{Gap, Part, Place, Unreadable, hexadecimal, locate, same_id};
use crate::jitdump::{self, JitProgram, owned};
use crate::module::{Module, ModuleKind};
use crate::ranges::RangeMap;
use crate::symbols::kernel::{self, Kernel};
use crate::symbols::program::Program;
use crate::symbols::table::{Binding, Symbol, Table};
use isa::elf::Layout;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use tma::files::{LONGEST_TEXT, read_open};

impl Symbols {
    pub(super) fn load(&mut self, module: &Module) -> usize {
        let loaded = match module.kind {
            ModuleKind::File => self.load_file(module),
            ModuleKind::Kernel | ModuleKind::KernelModule => self.load_kernel(module),
            ModuleKind::Vdso => self.load_vdso(module),
            ModuleKind::Anonymous => self.load_jit(module),
            ModuleKind::Jitdump => self.load_dump(module),
            ModuleKind::Unknown => LoadedModule::without(Gap::NoCode),
        };
        let number = self.loaded.len();
        self.loaded.push(loaded);
        self.modules.push(module.clone());
        self.numbers.insert(module.clone(), number);
        number
    }

    fn load_file(&self, module: &Module) -> LoadedModule {
        let found = match locate(&self.files.search, module) {
            Ok(found) => found,
            Err(gap) => return LoadedModule::without(gap),
        };
        if let Some(recorded) = self.origin.architecture.as_deref()
            && !found.layout.runs_on(recorded)
        {
            return LoadedModule::without(Gap::OtherProcessor(recorded.to_owned()));
        }
        match self.files.read(&found.file) {
            Ok(data) => self.load_program(module, Program::new(data, found.place, found.layout)),
            Err(error) => LoadedModule::without(Gap::Unreadable(error.into())),
        }
    }

    fn load_program(&self, module: &Module, mut program: Program) -> LoadedModule {
        match program.table(&self.files) {
            Ok(table) => {
                let table = table.of_file(module.name());
                LoadedModule { table, program: Some(program), ..LoadedModule::default() }
            }
            Err(error) => LoadedModule::without(Gap::Unreadable(error.into())),
        }
    }

    fn load_kernel(&mut self, module: &Module) -> LoadedModule {
        let own_id = module.build_id.as_deref().filter(|_| module.kind == ModuleKind::Kernel);
        if let Err(gap) = kernel::is_recorded(own_id, &self.origin, &self.root) {
            return match self.cached_kernel(module) {
                Some(table) => LoadedModule { table, ..LoadedModule::default() },
                None => LoadedModule::without(gap),
            };
        }
        let kernel = self.kernel.get_or_insert_with(|| Kernel::read(&self.root));
        let kernel = kernel.as_ref().map_err(Clone::clone);
        match kernel.and_then(|k| k.table(module, &self.root, self.origin.this_boot)) {
            Ok(table) => LoadedModule { table, ..LoadedModule::default() },
            Err(gap) => LoadedModule::without(gap),
        }
    }

    fn load_vdso(&self, module: &Module) -> LoadedModule {
        let absent = || LoadedModule::without(Gap::NoFile(module.path.clone()));
        let Some(data) = kernel::vdso() else { return absent() };
        let Ok(layout) = Layout::read(&*data) else { return absent() };
        let found = layout.build_id.clone().unwrap_or_default();
        let same = match &module.build_id {
            Some(recorded) => same_id(recorded, &found),
            None => kernel::is_this_machine(&self.origin, &self.root),
        };
        if same {
            let place = Place::here(&module.path);
            return self.load_program(module, Program::new(data, place, layout));
        }
        if let Some(program) = self.cached_vdso(module) {
            return self.load_program(module, program);
        }
        match &module.build_id {
            Some(recorded) => {
                LoadedModule::without(Gap::Changed(hexadecimal(recorded), hexadecimal(&found)))
            }
            None => absent(),
        }
    }

    /// The recorded kernel's page, from a cache.
    fn cached_vdso(&self, module: &Module) -> Option<Program> {
        let recorded = module.build_id.as_deref()?;
        let places = self.files.search.cached(recorded, Part::Vdso);
        places.into_iter().find_map(|place| {
            let data = self.files.read(&place.open().ok()?).ok()?;
            let layout = Layout::read(&*data).ok()?;
            let same = layout.build_id.as_deref().is_some_and(|own| same_id(recorded, own));
            same.then(|| Program::new(data, place, layout))
        })
    }

    /// Symbols of the recorded kernel, from a cache: perf copies them from `/proc/kallsyms`.
    fn cached_kernel(&self, module: &Module) -> Option<Table> {
        let recorded = module.build_id.as_deref().filter(|_| module.kind == ModuleKind::Kernel)?;
        let places = self.files.search.cached(recorded, Part::Symbols);
        places.into_iter().find_map(|place| {
            let text = read_open(&place.open().ok()?, LONGEST_TEXT).ok()?;
            let kernel = Kernel::of(&String::from_utf8_lossy(&text)).ok()?;
            kernel.table(module, &self.root, false).ok()
        })
    }

    /// Functions of a JIT from its perf map file; the one in `/tmp` unless the recording is known to be
    /// from another host.
    fn load_jit(&self, module: &Module) -> LoadedModule {
        let Some(pid) = module.pid else { return LoadedModule::without(Gap::NoCode) };
        let inside = format!("tmp/perf-{pid}.map");
        let roots = self.files.search.roots.iter();
        let below = roots.filter_map(|root| Place::below(root, &inside).open().ok());
        let here =
            self.origin.host.as_ref().is_none_or(|host| {
                self.root.text("proc/sys/kernel/hostname").as_ref() == Some(host)
            });
        let mut gap = Gap::NoFile(format!("/{inside}"));
        let mut found: Vec<File> = below.collect();
        if here || self.origin.live {
            match owned(pid, &Path::new("/").join(&inside)) {
                Ok(file) => found.push(file),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    gap = Gap::Unreadable(Unreadable::Map(format!("/{inside}"), error.into()));
                }
            }
        }
        for file in found {
            let length = file.metadata().map_or(0, |found| found.len());
            let text = self.files.take(length).and_then(|()| read_open(&file, LONGEST_TEXT));
            match text {
                Ok(text) => {
                    return LoadedModule { table: map_table(&text), ..LoadedModule::default() };
                }
                Err(error) => gap = Gap::Unreadable(error.into()),
            }
        }
        LoadedModule::without(gap)
    }

    /// Code, names and lines of a jitdump.
    fn load_dump(&self, module: &Module) -> LoadedModule {
        let pid = module.pid.unwrap_or(u32::MAX);
        let file = || Ok::<_, Unreadable>(jitdump::open(&self.files.search, &module.path, pid)?);
        let (functions, lines) = match file().and_then(JitProgram::read) {
            Ok(found) => found,
            Err(reason) => return LoadedModule::without(Gap::Unreadable(reason)),
        };
        let code = file().and_then(jitdump::elf);
        let program = code.ok().filter(|code| self.files.take(code.len() as u64).is_ok());
        let program = program.and_then(|code| {
            let layout = Layout::read(&*code).ok()?;
            Some(Program::new(code, Place::here(&module.path), layout))
        });
        let compiled = Some(lines);
        LoadedModule { gap: None, table: jitdump_table(functions), program, compiled }
    }
}

/// The functions in `text`. JITs reuse memory: for an address, the last line holds. Malformed lines
/// are skipped.
fn map_table(text: &[u8]) -> Table {
    let text = String::from_utf8_lossy(text);
    let mut ranges = RangeMap::default();
    for line in text.lines() {
        if let Some((start, end, name)) = parse_line(line) {
            ranges.insert(start, end, name);
        }
    }
    let symbols = ranges.iter().map(|(start, end, name)| Symbol {
        start,
        size: end - start,
        binding: Binding::Global,
        label: false,
        name: (*name).into(),
    });
    Table::new(symbols.collect(), Vec::new(), Vec::new()).verbatim()
}

/// The functions of a jitdump.
fn jitdump_table(functions: Vec<jitdump::Function>) -> Table {
    let symbols = functions.into_iter().filter(|function| !function.name.is_empty());
    let symbols = symbols.map(|function| Symbol {
        start: function.start,
        size: function.size,
        binding: Binding::Global,
        label: false,
        name: function.name,
    });
    Table::new(symbols.collect(), Vec::new(), Vec::new()).verbatim()
}

fn parse_line(line: &str) -> Option<(u64, u64, &str)> {
    let (start, rest) = line.trim().split_once([' ', '\t'])?;
    let (size, name) = rest.trim_start().split_once([' ', '\t'])?;
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (start, name) = (number(start)?, name.trim());
    let end = start.checked_add(number(size)?)?;
    (!name.is_empty()).then_some((start, end, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn later_lines_override_earlier_ones_and_names_have_blanks() {
        let text = b"1000 100 LazyCompile:~add /tmp/a.js:1\n0x1040 10 Stub\nnonsense\n\
            5000 10 _Z3addii@js\n2000 zz bad\n3000 10\n1080 20 \xff\nffffffffffffffff 10 wraps\n";
        let mut table = map_table(text);
        let mut name = |address| table.function(address).map(|f| (f.name.clone(), f.start, f.end));
        let whole = "LazyCompile:~add /tmp/a.js:1".to_owned();
        assert_eq!(name(0x1000), Some((whole.clone(), 0x1000, 0x1040)));
        assert_eq!(name(0x1045), Some(("Stub".into(), 0x1040, 0x1050)));
        assert_eq!(name(0x1070), Some((whole, 0x1050, 0x1080)));
        assert_eq!(name(0x1081), Some(("\u{fffd}".into(), 0x1080, 0x10a0)));
        assert_eq!(name(0x5000), Some(("_Z3addii@js".into(), 0x5000, 0x5010)));
        assert_eq!(name(0x3000), None);
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(text in prop::collection::vec(any::<u8>(), 0..300)) {
            map_table(&text);
        }

        #[test]
        fn no_numbers_break_it(lines in prop::collection::vec("[0-9a-f]{1,16} [0-9a-f]{1,16} f", 0..20)) {
            map_table(lines.join("\n").as_bytes());
        }
    }
}
