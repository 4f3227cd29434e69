//! Functions, lines and inlined functions of modules; lazily, cached.
//!
//! | file | concern |
//! |---|---|
//! | `files` | where a module's file is, and whether it is the one recorded |
//! | `layout` | program headers: file offset ↔ address |
//! | `program` | one ELF file with what has been read of it so far |
//! | `elf` | its symbols, PLT stubs, unwind entries, sections |
//! | `table` | from symbols to what lies at an address |
//! | [`demangle`](mod@demangle) | names as they were written |
//! | `debug_file` | separate debug files |
//! | `dwarf` | lines and inlined functions |
//! | `kernel` | the running kernel's symbols, the vdso |
//! | `jit` | perf map files |
//!
//! Names are never guessed: a module whose file has changed since has no functions, and code
//! without symbols is called by section and offset.

mod debug_file;
pub mod demangle;
mod dwarf;
mod elf;
mod files;
mod jit;
mod kernel;
mod layout;
mod program;
mod table;

pub(super) use files::locate;
pub(super) use layout::Layout;

use super::module::{Kind, Module};
use super::space::Place;
use kernel::Kernel;
use pmu::machine::Root;
use program::Program;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use table::Table;

/// A function, or what stands for one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// Demangled name; of stripped code its section and range (`.text+0x1a0`).
    pub name: String,
    /// The same without parameters and return type, as `perf report` has it: what a person looks
    /// for, where there is little room.
    pub short: String,
    /// Name as in the symbol table, where there is one.
    pub linkage: Option<String>,
    /// First address, p_vaddr.
    pub start: u64,
    /// Behind its last address.
    pub end: u64,
    /// Whether a symbol says so; otherwise the range is guessed from what is around.
    pub named: bool,
}

/// A line of source, and the function it was inlined from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// File.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Function that it was written in, demangled, where it was inlined.
    pub inlined: Option<String>,
}

/// Where symbols are looked for.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// Folders with programs (as `perf --symfs`), tried first: with a program's whole path below
    /// them, then with its name alone.
    pub roots: Vec<PathBuf>,
    /// Folders with debug files; the usual ones if empty.
    pub debug: Vec<PathBuf>,
}

/// Where and when a recording was made: whether this machine's kernel, vdso and perf map files
/// have anything to do with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// It was made on this host, with the kernel release that runs now.
    pub live: bool,
    /// It is known to be made since the last boot: the kernel lies where it lay then.
    pub this_boot: bool,
    /// Kernel release (`uname -r`), where it is known.
    pub kernel: Option<String>,
    /// Host, where it is known.
    pub host: Option<String>,
    /// Processor's architecture (`uname -m`), where it is known.
    pub architecture: Option<String>,
}

/// Why there is nothing to annotate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// No such file.
    NoFile(String),
    /// The file has changed since: build-ids (recorded, found).
    Changed(String, String),
    /// Another kernel runs here (releases recorded, running).
    OtherKernel(String, String),
    /// The file here is another processor's; recorded was this architecture.
    OtherProcessor(String),
    /// It cannot be read as an ELF file, for this reason.
    Unreadable(String),
    /// It has no code at that address.
    NoCode,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile(path) => write!(f, "{path} is not here"),
            Self::Changed(recorded, found) => {
                let (recorded, found) = (shortened(recorded), shortened(found));
                write!(f, "it has changed since: build-id {recorded} recorded, {found} found")
            }
            Self::OtherKernel(recorded, found) => {
                write!(f, "it is kernel {recorded}; {found} runs here")
            }
            Self::OtherProcessor(recorded) => {
                write!(f, "the file here is for another processor than the recorded {recorded}")
            }
            Self::Unreadable(reason) => write!(f, "it cannot be read: {reason}"),
            Self::NoCode => f.write_str("it has no code there"),
        }
    }
}

/// The head of a build-id, enough to compare by eye.
fn shortened(id: &str) -> String {
    let head: String = id.chars().take(12).collect();
    if head.len() < id.len() { head + "\u{2026}" } else { head }
}

/// What has been read of a module.
#[derive(Debug, Default)]
struct Loaded {
    gap: Option<Gap>,
    table: Table,
    program: Option<Program>,
}

impl Loaded {
    fn without(gap: Gap) -> Self {
        Self { gap: Some(gap), ..Self::default() }
    }
}

/// Symbols of all modules.
#[derive(Debug)]
pub struct Symbols {
    search: Search,
    origin: Origin,
    root: Root,
    kernel: Option<Result<Kernel, Gap>>,
    numbers: HashMap<Module, usize>,
    loaded: Vec<Loaded>,
    /// The modules of `loaded`, and the one asked for last: samples in a row are often of one.
    modules: Vec<Module>,
    last: usize,
}

impl Default for Symbols {
    fn default() -> Self {
        Self::new(Search::default())
    }
}

impl Symbols {
    /// Looks in these places.
    pub fn new(search: Search) -> Self {
        Self {
            search,
            origin: Origin::default(),
            root: Root::system(),
            kernel: None,
            numbers: HashMap::new(),
            loaded: Vec::new(),
            modules: Vec::new(),
            last: 0,
        }
    }

    /// For a recording of this origin. Without, the kernel is recognised by its build-id alone.
    #[must_use]
    pub fn of(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// With `/proc` below another folder.
    #[must_use]
    pub fn with_root(mut self, root: Root) -> Self {
        self.root = root;
        self
    }

    /// The function at a place of `module`.
    pub fn function(&mut self, module: &Module, place: Place) -> Option<Function> {
        self.function_at(module, place.address).cloned()
    }

    /// The function at an address (p_vaddr) of `module`: nothing is copied.
    pub fn function_at(&mut self, module: &Module, address: u64) -> Option<&Function> {
        self.loaded(module).table.function(address)
    }

    /// The line at a place, the innermost inlined function first.
    pub fn lines(&mut self, module: &Module, place: Place) -> Vec<Line> {
        let number = self.number(module);
        let program = self.loaded[number].program.as_mut();
        let lines = program.and_then(|program| program.lines(&self.search));
        lines.map(|lines| lines.at(place.address).to_vec()).unwrap_or_default()
    }

    /// The code from `start` to `end` (p_vaddr).
    ///
    /// # Errors
    /// Why there is none.
    pub fn code(&mut self, module: &Module, start: u64, end: u64) -> Result<Vec<u8>, Gap> {
        Ok(self.image_of(module)?.code(start, end).ok_or(Gap::NoCode)?.to_vec())
    }

    /// The module as it lies in memory; cheap to copy.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn image(&mut self, module: &Module) -> Result<Arc<program::Loaded>, Gap> {
        self.image_of(module).cloned()
    }

    fn image_of(&mut self, module: &Module) -> Result<&Arc<program::Loaded>, Gap> {
        let loaded = self.loaded(module);
        let gap = loaded.gap.clone();
        match loaded.program.as_mut() {
            Some(program) => program.image().map_err(Gap::Unreadable),
            None => Err(gap.unwrap_or_else(|| Gap::NoFile(module.path.clone()))),
        }
    }

    /// What is wrong with a module, if anything: said once in a report.
    pub fn gap(&mut self, module: &Module) -> Option<Gap> {
        self.loaded(module).gap.clone()
    }

    fn loaded(&mut self, module: &Module) -> &mut Loaded {
        let number = self.number(module);
        &mut self.loaded[number]
    }

    fn number(&mut self, module: &Module) -> usize {
        if self.modules.get(self.last) != Some(module) {
            self.last = match self.numbers.get(module) {
                Some(&number) => number,
                None => self.load(module),
            };
        }
        self.last
    }

    fn load(&mut self, module: &Module) -> usize {
        let loaded = match module.kind {
            Kind::File => self.load_file(module),
            Kind::Kernel | Kind::KernelModule => self.load_kernel(module),
            Kind::Vdso => self.load_vdso(module),
            Kind::Anonymous => self.load_jit(module),
            Kind::Unknown => Loaded::without(Gap::NoCode),
        };
        let number = self.loaded.len();
        self.loaded.push(loaded);
        self.modules.push(module.clone());
        self.numbers.insert(module.clone(), number);
        number
    }

    fn load_file(&self, module: &Module) -> Loaded {
        let found = match locate(&self.search, module) {
            Ok(found) => found,
            Err(gap) => return Loaded::without(gap),
        };
        if let Some(recorded) = self.origin.architecture.as_deref()
            && !found.layout.runs_on(recorded)
        {
            return Loaded::without(Gap::OtherProcessor(recorded.to_owned()));
        }
        match files::read(&found.path) {
            Ok(data) => self.load_program(Program::new(data, found.path, found.layout)),
            Err(error) => Loaded::without(Gap::Unreadable(error.to_string())),
        }
    }

    fn load_program(&self, mut program: Program) -> Loaded {
        match program.table(&self.search) {
            Ok(table) => Loaded { gap: None, table, program: Some(program) },
            Err(reason) => Loaded::without(Gap::Unreadable(reason)),
        }
    }

    fn load_kernel(&mut self, module: &Module) -> Loaded {
        let own_id = module.build_id.as_deref().filter(|_| module.kind == Kind::Kernel);
        if let Err(gap) = kernel::is_recorded(own_id, &self.origin, &self.root) {
            return Loaded::without(gap);
        }
        let kernel = self.kernel.get_or_insert_with(|| Kernel::read(&self.root));
        let kernel = kernel.as_ref().map_err(Clone::clone);
        match kernel.and_then(|k| k.table(module, &self.root, self.origin.this_boot)) {
            Ok(table) => Loaded { table, ..Loaded::default() },
            Err(gap) => Loaded::without(gap),
        }
    }

    fn load_vdso(&self, module: &Module) -> Loaded {
        let absent = || Loaded::without(Gap::NoFile(module.path.clone()));
        let Some(data) = kernel::vdso() else { return absent() };
        let Ok(layout) = Layout::read(&*data) else { return absent() };
        let found = layout.build_id.clone().unwrap_or_default();
        let same = match &module.build_id {
            Some(recorded) => files::same_id(recorded, &found),
            None => kernel::is_this_machine(&self.origin, &self.root),
        };
        if same {
            return self.load_program(Program::new(data, module.path.clone().into(), layout));
        }
        match &module.build_id {
            Some(recorded) => Loaded::without(Gap::Changed(
                files::hexadecimal(recorded),
                files::hexadecimal(&found),
            )),
            None => absent(),
        }
    }

    /// Functions of a JIT by its perf map file; that in `/tmp` only if the recording is not known
    /// to be of another host.
    fn load_jit(&self, module: &Module) -> Loaded {
        let Some(pid) = module.pid else { return Loaded::without(Gap::NoCode) };
        let inside = format!("tmp/perf-{pid}.map");
        let mut places: Vec<PathBuf> =
            self.search.roots.iter().map(|root| root.join(&inside)).collect();
        let here =
            self.origin.host.as_ref().is_none_or(|host| {
                self.root.text("proc/sys/kernel/hostname").as_ref() == Some(host)
            });
        if here || self.origin.live {
            places.push(PathBuf::from("/").join(&inside));
        }
        match places.iter().find_map(|path| files::read(path).ok()) {
            Some(text) => Loaded { table: jit::parse(&text), ..Loaded::default() },
            None => Loaded::without(Gap::NoFile(format!("/{inside}"))),
        }
    }
}
