//! ELF files with their DWARF, fed with any bytes: functions, lines, inlined functions, variables and code.
//! Shared by the fuzz target and by the ordinary tests.

use profile::address_space::ModuleAddress;
use profile::files::{Program, SearchPaths};
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;

/// Addresses asked for, from the first of the program.
const OFFSETS: [u64; 8] = [0, 1, 0xe8, 0x100, 0x130, 0x1000, 0x2000, u64::MAX / 2];

/// Feeds `data` as a file.
///
/// # Panics
/// An error says nothing, or a function does not hold its address.
pub fn feed(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program");
    std::fs::write(&path, data).expect("a file");
    let first = match Program::read(&path) {
        Ok(program) => program.first_address(),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            0
        }
    };
    let search = SearchPaths { debug: vec![folder.path().to_owned()], ..SearchPaths::default() };
    let path = path.display().to_string();
    let kind = ModuleKind::of_path(&path);
    let module = Module { path, kind, build_id: None, pid: None, inode: None, reference: None };
    let mut symbols = Symbols::new(search);
    for offset in OFFSETS {
        let address = first.wrapping_add(offset);
        if let Some(function) = symbols.function_at(&module, address) {
            assert!(!function.name.is_empty());
        }
        let place = ModuleAddress { module: 0, address };
        symbols.lines(&module, place);
        symbols.source_point(&module, place);
        symbols.object(&module, place);
        if let Ok(ty) = symbols.static_type(&module, address) {
            let _ = symbols.member(&module, ty, offset % 64, true);
            let _ = symbols.pointee(&module, ty);
            symbols.size_of(&module, ty);
        }
        for variable in symbols.variables(&module, place).iter().flat_map(|all| all.iter()) {
            assert!(!variable.name.is_empty());
        }
        let _ = symbols.code(&module, address, address.saturating_add(64));
    }
    let _ = symbols.image(&module);
}
