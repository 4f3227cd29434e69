//! Functions of code. Symbols of the kernel and of files with a build-id are kept from window to window, as reading
//! them takes most of a window's time; others may be of different code by then.

use profile::files::SearchPaths;
use profile::hot::origin;
use profile::module::{Module, ModuleAddress, ModuleKind};
use profile::recording::About;
use profile::symbols::{Function, Symbols};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Symbols are read again after this time: kernel modules come and go.
const KEPT: Duration = Duration::from_secs(3600);
/// Most modules whose symbols are kept.
const MOST: usize = 512;

/// Symbols of all code.
pub(super) struct Names {
    kept: Symbols,
    fresh: Symbols,
    modules: HashSet<Module>,
    since: Instant,
}

impl Names {
    pub fn new() -> Self {
        let (kept, fresh) = (Symbols::default(), Symbols::default());
        Self { kept, fresh, modules: HashSet::new(), since: Instant::now() }
    }

    /// A window begins whose samples are of this recording.
    pub fn begin(&mut self, about: &About) {
        let new = || Symbols::new(SearchPaths::default()).with_origin(origin(about));
        let is_old = self.since.elapsed() > KEPT || self.modules.len() > MOST;
        if is_old || self.modules.is_empty() {
            (self.kept, self.since) = (new(), Instant::now());
            self.modules.clear();
        }
        self.fresh = new();
    }

    /// A window ends.
    pub fn end(&mut self) {
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
        }
        self.kept.function_at(module, place.address)
    }
}
