//! Looks up symbols and types of data of all modules, read on first use, then cached.

mod load;

use super::dwarf::{Lines, SourcePoint};
use super::elf::DataObject;
use super::kernel::{Kernel, Origin};
use super::program::{Program, ProgramImage};
use super::table::{Function, Line, Table};
use super::types::{DataTypes, Member, Pointee, TypeRef, Untyped, Variable};
use crate::files::{Files, Gap, SearchPaths, Unreadable};
use crate::jitdump::JitProgram;
use crate::module::{Module, ModuleAddress};
use crate::unwind;
use pmu::machine::Root;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A module's data, as read so far.
#[derive(Debug, Default)]
struct LoadedModule {
    gap: Option<Gap>,
    table: Table,
    program: Option<Program>,
    /// Lines of code that was compiled just in time.
    compiled: Option<JitProgram>,
}

impl LoadedModule {
    fn without(gap: Gap) -> Self {
        Self { gap: Some(gap), ..Self::default() }
    }
}

/// Symbols of all modules.
///
/// ```
/// use profile::module::{Module, ModuleKind};
/// use profile::symbols::Symbols;
///
/// // This program: its entry point (e_entry, at offset 24 of a 64-bit ELF file) is `_start` of the
/// // C library's start-up code.
/// let path = std::env::current_exe()?;
/// let entry = u64::from_le_bytes(std::fs::read(&path)?[24..32].try_into()?);
/// let path = path.to_string_lossy().into_owned();
/// let program = Module { path, kind: ModuleKind::File, ..Module::default() };
///
/// let mut symbols = Symbols::default();
/// let function = symbols.function_at(&program, entry).expect("the entry point is code").clone();
/// assert_eq!((function.name.as_str(), function.start), ("_start", entry));
/// let code = symbols.code(&program, function.start, function.end).map_err(|gap| gap.to_string())?;
/// assert_eq!(code.len() as u64, function.end - function.start);
///
/// // A module without a file has no functions, and a reason.
/// let gone = Module { path: "/nowhere/a.out".into(), ..program };
/// assert!(symbols.function_at(&gone, entry).is_none() && symbols.gap(&gone).is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Symbols {
    files: Files,
    origin: Origin,
    root: Root,
    kernel: Option<Result<Kernel, Gap>>,
    numbers: HashMap<Module, usize>,
    loaded: Vec<LoadedModule>,
    /// The modules of `loaded`.
    modules: Vec<Module>,
    /// Number of the last one looked up: consecutive samples often share a module.
    last: usize,
}

impl Default for Symbols {
    fn default() -> Self {
        Self::new(SearchPaths::default())
    }
}

impl Symbols {
    /// Looks for programs and debug files in `search`.
    pub fn new(search: SearchPaths) -> Self {
        Self {
            files: Files::new(search),
            origin: Origin::default(),
            root: Root::system(),
            kernel: None,
            numbers: HashMap::new(),
            loaded: Vec::new(),
            modules: Vec::new(),
            last: 0,
        }
    }

    /// For a recording of this origin. Without one, the kernel is identified by its build-id only.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Reads `/proc` below another folder.
    #[must_use]
    pub fn with_root(mut self, root: Root) -> Self {
        self.root = root;
        self
    }

    /// The function at an address of `module`.
    pub fn function(&mut self, module: &Module, place: ModuleAddress) -> Option<Function> {
        self.function_at(module, place.address).cloned()
    }

    /// The function at `address` (p_vaddr) of `module`, without copying it.
    pub fn function_at(&mut self, module: &Module, address: u64) -> Option<&Function> {
        self.loaded(module).table.function(address)
    }

    /// The functions that symbols of `module` name, of its separate debug file, too: their names in the symbol table
    /// and ranges (p_vaddr), in order of address.
    pub fn named(&mut self, module: &Module) -> impl Iterator<Item = (&str, Range<u64>)> {
        self.loaded(module).table.named()
    }

    /// The source lines at an address of `module`, the innermost inlined function first.
    pub fn lines(&mut self, module: &Module, place: ModuleAddress) -> Vec<Line> {
        let number = self.number(module);
        let loaded = &mut self.loaded[number];
        if let Some(compiled) = &loaded.compiled {
            let function = loaded.table.function(place.address);
            let line = function.and_then(|own| compiled.line(own.start, place.address));
            let line = line.map(|(file, line)| (file.map(str::to_owned), line));
            return line
                .map(|(file, line)| Line { file, line, ..Line::default() })
                .into_iter()
                .collect();
        }
        let program = loaded.program.as_mut();
        let lines = program.and_then(|program| program.lines(&self.files));
        lines.map(|lines| lines.at(place.address).to_vec()).unwrap_or_default()
    }

    /// Where code of a source line begins in `module` (p_vaddr); `file` is the end of its path.
    pub fn line_addresses(&mut self, module: &Module, file: &str, line: u32) -> Vec<u64> {
        let number = self.number(module);
        let program = self.loaded[number].program.as_mut();
        let lines = program.and_then(|program| program.lines(&self.files));
        lines.map(|lines| lines.addresses(file, line)).unwrap_or_default()
    }

    /// The instruction at an address of `module` as sample profiles of compilers name it; `None` if it is inlined,
    /// or not known.
    pub fn source_point(&mut self, module: &Module, place: ModuleAddress) -> Option<SourcePoint> {
        let number = self.number(module);
        let program = self.loaded[number].program.as_mut()?;
        program.lines(&self.files)?.source_point(place.address)
    }

    /// The static variable at an address of `module`; its section where no symbol is known.
    pub fn object(&mut self, module: &Module, place: ModuleAddress) -> Option<&DataObject> {
        let number = self.number(module);
        let program = self.loaded[number].program.as_mut()?;
        program.object(&self.files, place.address)
    }

    /// Whether a module lies at the same addresses in every process (it is not position independent).
    pub fn is_fixed(&mut self, module: &Module) -> bool {
        self.loaded(module).program.as_ref().is_some_and(Program::is_fixed)
    }

    /// Unwind tables of a module; `None` without a file.
    pub(crate) fn unwind_table(&mut self, module: &Module) -> Option<&mut unwind::Table> {
        let number = self.number(module);
        self.loaded[number].program.as_mut()?.unwind_table(&self.files)
    }

    /// DWARF of a module.
    pub(super) fn dwarf(&mut self, module: &Module) -> Option<&mut Lines> {
        let number = self.number(module);
        self.loaded[number].program.as_mut()?.lines(&self.files)
    }

    /// The code from `start` to `end` (p_vaddr, exclusive).
    pub fn code(&mut self, module: &Module, start: u64, end: u64) -> Result<Vec<u8>, Gap> {
        Ok(self.image_of(module)?.code(start, end).ok_or(Gap::NoCode)?.to_vec())
    }

    /// The module as it is mapped in memory; cheap to clone.
    pub fn image(&mut self, module: &Module) -> Result<Arc<ProgramImage>, Gap> {
        self.image_of(module).cloned()
    }

    fn image_of(&mut self, module: &Module) -> Result<&Arc<ProgramImage>, Gap> {
        let loaded = self.loaded(module);
        let gap = loaded.gap.clone();
        match loaded.program.as_mut() {
            Some(program) => program.image().map_err(|why| Gap::Unreadable(Unreadable::Image(why))),
            None => Err(gap.unwrap_or_else(|| Gap::NoFile(module.path.clone()))),
        }
    }

    /// The reason why the code or symbols of a module are unavailable, if they are.
    pub fn gap(&mut self, module: &Module) -> Option<Gap> {
        self.loaded(module).gap.clone()
    }

    fn loaded(&mut self, module: &Module) -> &mut LoadedModule {
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

    fn types(&mut self, module: &Module) -> Result<&mut DataTypes, Untyped> {
        self.dwarf(module).and_then(|lines| lines.types()).ok_or(Untyped::NoDwarf)
    }

    /// The type of the static variable of `module` that begins at `start`.
    pub fn static_type(&mut self, module: &Module, start: u64) -> Result<TypeRef, Untyped> {
        self.types(module)?.of_static(start)
    }

    /// The variables in scope at an instruction that are in a register or at a distance from one, the innermost
    /// first.
    pub fn variables(
        &mut self,
        module: &Module,
        place: ModuleAddress,
    ) -> Result<Arc<Vec<Variable>>, Untyped> {
        self.dwarf(module).ok_or(Untyped::NoDwarf)?.variables(place.address)
    }

    /// The member at an offset of a type of `module`; `exact`: elements of arrays have their numbers.
    pub fn member(
        &mut self,
        module: &Module,
        ty: TypeRef,
        offset: u64,
        exact: bool,
    ) -> Result<Member, Untyped> {
        self.types(module)?.member(ty, offset, exact)
    }

    /// Target of a pointer or reference of type `ty` of `module`.
    pub fn pointee(&mut self, module: &Module, ty: TypeRef) -> Result<Pointee, Untyped> {
        self.types(module)?.pointee(ty)
    }

    /// Bytes of a type of `module`, if known.
    pub fn size_of(&mut self, module: &Module, ty: TypeRef) -> Option<u64> {
        self.types(module).ok()?.size(ty)
    }
}
