//! A program whose recording does not say where it was mapped.

use super::layout::Layout;
use super::locate::locate;
use super::search::SearchPaths;
use crate::module::Module;
use crate::record::Mapping;
use object::ReadCache;
use std::path::Path;
use tma::{Error, Result};

/// A program's addresses.
#[derive(Debug, Clone)]
pub struct Program {
    path: String,
    layout: Layout,
}

impl Program {
    /// Reads the headers of a program.
    ///
    /// # Errors
    /// It cannot be read, or is no ELF file.
    pub fn read(path: &Path) -> Result<Self> {
        let cannot = || Error::failed(format!("cannot read {}", path.display()));
        let file = tma::files::open(path).map_err(|e| cannot().because(e))?;
        let layout = Layout::read(&ReadCache::new(file)).map_err(|why| cannot().because(why))?;
        Ok(Self { path: path.display().to_string(), layout })
    }

    /// The program of a module, wherever it is found.
    ///
    /// # Errors
    /// It is not found, or is not the recorded one.
    pub fn of(module: &Module, search: &SearchPaths) -> Result<Self> {
        let found = locate(search, module).map_err(|gap| {
            Error::failed(format!("the program {} is not known", module.path))
                .because(gap.to_string())
                .hint("name it with --binary FILE or --symfs DIR")
        })?;
        Ok(Self { path: found.place.path().display().to_string(), layout: found.layout })
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its build-id.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.layout.build_id.as_deref()
    }

    /// Whether it can be loaded anywhere: its first segment is at address 0.
    pub fn is_relocatable(&self) -> bool {
        self.first_address() == 0
    }

    /// Address (p_vaddr) of its first segment.
    pub fn first_address(&self) -> u64 {
        self.layout.segments.iter().map(|s| s.address).min().unwrap_or(0)
    }

    /// The address (p_vaddr) of an offset in the file.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.layout.address_of(offset)
    }

    /// The offset in the file of code at an address (p_vaddr).
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        self.layout.offset_of(address)
    }

    /// Whether there is code at an address (p_vaddr).
    pub fn has_code(&self, address: u64) -> bool {
        self.offset_of(address).is_some()
    }

    /// The mappings of its code in a process, `base` above its own addresses.
    pub fn mappings(&self, pid: u32, base: u64) -> Vec<Mapping> {
        let code = self.layout.segments.iter().filter(|s| s.executable);
        code.map(|segment| Mapping {
            pid,
            tid: pid,
            start: segment.address.wrapping_add(base),
            length: segment.memory_size,
            offset: segment.offset,
            path: self.path.clone(),
            build_id: self.layout.build_id.clone(),
            inode: None,
            executable: Some(true),
            kernel: false,
        })
        .collect()
    }
}
