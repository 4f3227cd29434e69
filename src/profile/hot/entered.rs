//! Kernel time by how and where threads entered the kernel: by the outermost frames of the kernel in call chains, and by
//! the user code below them.

use super::Profile;
use super::tally::{FunctionKey, HotLine, Tally, key_at};
use crate::address_space::ModuleAddress;
use crate::module::ModuleKind;
use std::collections::{BTreeMap, HashMap};

/// `syscall` on x86-64.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// How a thread entered the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entered {
    /// By a page fault.
    PageFault,
    /// By a system call.
    SystemCall,
    /// By an interrupt, or it is not known how.
    Other,
}

/// User code that entered the kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnteredFrom {
    /// Name of its function, without parameters.
    pub name: String,
    /// Path of its module.
    pub module: String,
    /// Its address with most samples (p_vaddr); after a system call's instruction.
    pub address: u64,
    /// The source line there.
    pub line: Option<HotLine>,
    /// Share of all samples.
    pub share: f64,
}

/// Samples of the kernel that entered it in one way.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelPart {
    /// That way.
    pub entered: Entered,
    /// Share of all samples.
    pub share: f64,
    /// The user code, that with most samples first.
    pub from: Vec<EnteredFrom>,
}

impl Profile {
    /// Threads with samples, if entries were asked for.
    pub fn threads(&self) -> usize {
        self.gathered.entries.threads.len()
    }

    /// Threads with at least 2 % of the samples: not one that only starts others.
    pub fn busy_threads(&self) -> usize {
        let all = &self.gathered.entries.threads;
        let sum: u64 = all.values().sum();
        all.values().filter(|own| **own * 50 >= sum).count()
    }

    /// Kernel time by its entries; what is sampled at the instruction of a system call is counted to it.
    pub fn entered(&mut self) -> Vec<KernelPart> {
        let mut sums: BTreeMap<Entered, HashMap<Option<ModuleAddress>, Tally>> = BTreeMap::new();
        for ((outer, user), tally) in std::mem::take(&mut self.gathered.entries.by) {
            let by_name = outer.into_iter().flatten().find_map(|place| self.entry(place));
            let mut is_call = || user.is_some_and(|place| self.calls_system(place, 2));
            let by_code = || if is_call() { Entered::SystemCall } else { Entered::Other };
            let entered = by_name.unwrap_or_else(by_code);
            sums.entry(entered).or_default().entry(user).or_default().add(tally);
        }
        for (place, tally) in self.beside_calls() {
            let calls = sums.entry(Entered::SystemCall).or_default();
            calls.entry(Some(place)).or_default().add(tally);
        }
        let mut parts = Vec::new();
        for (entered, places) in sums {
            let mut all = Tally::default();
            places.values().for_each(|tally| all.add(*tally));
            let share = self.gathered.share(all);
            parts.push(KernelPart { entered, share, from: self.entered_from(places) });
        }
        parts
    }

    /// How a function of the kernel is entered, if it is an entry.
    fn entry(&mut self, place: ModuleAddress) -> Option<Entered> {
        let module = self.spaces.modules.all.get(place.module)?;
        let name = &self.symbols.function_at(module, place.address)?.name;
        // x86-64, with older names; AArch64.
        let is_call = ["entry_SYSCALL", "do_syscall", "entry_INT80", "do_int80", "el0_svc"];
        let is_fault = ["asm_exc_page_fault", "exc_page_fault", "page_fault", "el0_da", "el0_ia"];
        match name.as_str() {
            name if is_call.iter().any(|begin| name.starts_with(begin)) => {
                Some(Entered::SystemCall)
            }
            name if is_fault.contains(&name) => Some(Entered::PageFault),
            _ => None,
        }
    }

    /// Whether the instruction so many bytes before an address is a system call.
    fn calls_system(&mut self, place: ModuleAddress, before: u64) -> bool {
        let Some(module) = self.spaces.modules.all.get(place.module) else { return false };
        let start = place.address.saturating_sub(before);
        module.kind != ModuleKind::Kernel
            && self.symbols.code(module, start, start + 2).is_ok_and(|bytes| bytes == SYSCALL)
    }

    /// User samples at the instruction of a system call, or where it returns to.
    fn beside_calls(&mut self) -> Vec<(ModuleAddress, Tally)> {
        let sums = self.keys.iter().zip(&self.addresses);
        let places = sums.flat_map(|((module, _), places)| {
            let at = |(address, tally): &(u64, Tally)| {
                (ModuleAddress { module: *module, address: *address }, *tally)
            };
            places.iter().map(at).collect::<Vec<_>>()
        });
        let mut places: Vec<(ModuleAddress, Tally)> = places.collect();
        places.retain(|(place, _)| self.calls_system(*place, 2) || self.calls_system(*place, 0));
        places
    }

    fn entered_from(&mut self, places: HashMap<Option<ModuleAddress>, Tally>) -> Vec<EnteredFrom> {
        let mut functions: BTreeMap<FunctionKey, Vec<(ModuleAddress, Tally)>> = BTreeMap::new();
        for (place, tally) in places {
            let Some(place) = place else { continue };
            let key = key_at(Some(place), &self.spaces, &mut self.symbols);
            functions.entry(key).or_default().push((place, tally));
        }
        let mut found: Vec<EnteredFrom> =
            functions.into_values().filter_map(|places| self.function_of(&places)).collect();
        found.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
        found
    }

    /// The function that all of these places are in.
    fn function_of(&mut self, places: &[(ModuleAddress, Tally)]) -> Option<EnteredFrom> {
        let hotter = |a: &&(ModuleAddress, Tally), b: &&(ModuleAddress, Tally)| {
            a.1.weight.total_cmp(&b.1.weight).then(b.0.address.cmp(&a.0.address))
        };
        let place = places.iter().max_by(hotter)?.0;
        let mut all = Tally::default();
        places.iter().for_each(|(_, tally)| all.add(*tally));
        let module = self.spaces.modules.all.get(place.module)?;
        let function = self.symbols.function_at(module, place.address);
        let name = function.map_or_else(String::new, |function| function.short.clone());
        let lines = self.symbols.lines(module, place);
        let line = lines.last().and_then(|line| {
            let (file, line) = line.file.clone().zip(line.line)?;
            Some(HotLine { file, line, inlined: None })
        });
        let module = module.path.clone();
        let share = self.gathered.share(all);
        Some(EnteredFrom { name, module, address: place.address, line, share })
    }
}
