//! Functions of code. Symbols of the kernel and of files with a build-id are kept from window to window, as reading
//! them takes most of a window's time; others may be of different code by then.

use pmu::sampling::ElsewhereFile;
use profile::files::SearchPaths;
use profile::hot::origin;
use profile::module::{Module, ModuleAddress, ModuleKind};
use profile::recording::About;
use profile::symbols::{Function, Symbols};
use std::collections::{HashMap, HashSet};
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

/// Symbols are read again after this time: kernel modules come and go.
const KEPT: Duration = Duration::from_secs(3600);
/// Most modules whose symbols are kept.
const MOST: usize = 512;
/// Most bytes of their files, which are in memory.
const MOST_BYTES: u64 = 256 << 20;

/// Where the programs of a recording are: in their files, and those that no path leads to (of containers, replaced
/// ones) where they are open. The files must stay open meanwhile.
pub(super) fn search(elsewhere: &[ElsewhereFile]) -> SearchPaths {
    let path = |one: &ElsewhereFile| format!("/proc/self/fd/{}", one.file.as_raw_fd()).into();
    SearchPaths { programs: elsewhere.iter().map(path).collect(), ..SearchPaths::default() }
}

/// Symbols of all code.
pub(super) struct Names {
    kept: Symbols,
    /// By build-id, of files that no path leads to, and whether they were read while the file was open.
    elsewhere: HashMap<Vec<u8>, (Symbols, bool)>,
    fresh: Symbols,
    modules: HashSet<Module>,
    /// Bytes of their files.
    bytes: u64,
    since: Instant,
}

impl Names {
    pub fn new() -> Self {
        let (kept, fresh) = (Symbols::default(), Symbols::default());
        let (elsewhere, modules) = (HashMap::new(), HashSet::new());
        Self { kept, elsewhere, fresh, modules, bytes: 0, since: Instant::now() }
    }

    /// A window begins whose samples are of this recording.
    pub fn begin(&mut self, about: &About, elsewhere: &[ElsewhereFile]) {
        let new = |search: SearchPaths| Symbols::new(search).with_origin(origin(about));
        let is_old = self.since.elapsed() > KEPT || self.modules.is_empty();
        if is_old || self.modules.len() > MOST || self.bytes > MOST_BYTES {
            *self = Self { kept: new(SearchPaths::default()), ..Self::new() };
        }
        for one in elsewhere {
            let own = || (new(search(std::slice::from_ref(one))), false);
            self.elsewhere.entry(one.build_id.clone()).or_insert_with(own);
        }
        self.fresh = new(SearchPaths::default());
    }

    /// A window ends, and with it the files that no path leads to.
    pub fn end(&mut self) {
        self.elsewhere.retain(|_, (_, is_read)| *is_read);
        self.fresh = Symbols::default();
    }

    /// The function at a place.
    pub fn function(&mut self, module: &Module, place: ModuleAddress) -> Option<&Function> {
        let stays = match module.kind {
            ModuleKind::Kernel | ModuleKind::KernelModule | ModuleKind::Vdso => true,
            ModuleKind::File => module.build_id.is_some(),
            _ => false,
        };
        if !stays {
            return self.fresh.function_at(module, place.address);
        }
        if !self.modules.contains(module) {
            self.modules.insert(module.clone());
            self.bytes += std::fs::metadata(&module.path).map_or(0, |found| found.len());
        }
        let own = module.build_id.as_ref().and_then(|id| self.elsewhere.get_mut(id));
        let symbols = match own {
            Some((symbols, is_read)) => {
                *is_read = true;
                symbols
            }
            None => &mut self.kept,
        };
        symbols.function_at(module, place.address)
    }
}
