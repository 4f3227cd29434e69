//! Decodes where the data of a sampled access came from: `union perf_mem_data_src` of linux/perf_event.h, and the
//! raw data of a sample of `ibs_op` (AMD).
//!
//! The level is in two places of the union: `mem_lvl`, a mask, and `mem_lvl_num` with `mem_remote`, which newer kernels
//! write (some write nothing else) and which distinguishes more kinds. The raw data is a word of capabilities and the
//! registers, as the kernel's `struct perf_ibs_data` (arch/x86/include/asm/amd-ibs.h; registers: AMD PPR 55898, "IBS Op
//! Data 2" and 3). Kernels before 6.1 write no data source, and none writes how many misses were under way.

/// Memory operation of a sampled instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// It reads; atomic instructions that also write are marked as locked.
    Load,
    /// It writes.
    Store,
    /// A software prefetch.
    Prefetch,
}

/// The level that served an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// The first cache.
    L1,
    /// A line that was on its way already (line fill buffer, miss address buffer): a late hit.
    Lfb,
    /// The second cache.
    L2,
    /// The third cache.
    L3,
    /// Memory of the own node.
    Ram,
    /// Memory of another node.
    RemoteRam,
    /// A cache of another core complex or node.
    RemoteCache,
    /// Something else, such as I/O or memory that is not cached, or not known to the hardware.
    Other,
}

impl Level {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 8] = [
        Self::Lfb,
        Self::L1,
        Self::L2,
        Self::L3,
        Self::Ram,
        Self::RemoteRam,
        Self::RemoteCache,
        Self::Other,
    ];

    /// Its key in documents: `lfb`, `remote_ram`.
    pub fn key(self) -> &'static str {
        match self {
            Self::L1 => "l1",
            Self::Lfb => "lfb",
            Self::L2 => "l2",
            Self::L3 => "l3",
            Self::Ram => "ram",
            Self::RemoteRam => "remote_ram",
            Self::RemoteCache => "remote_cache",
            Self::Other => "other",
        }
    }

    /// Whether the last cache of the own node did not have the line.
    pub fn is_miss_of_last_cache(self) -> bool {
        matches!(self, Self::Ram | Self::RemoteRam | Self::RemoteCache)
    }
}

/// Answer of the other caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Snoop {
    /// They were not asked, it is not known, or none had the line.
    #[default]
    None,
    /// One had the line, unmodified.
    Hit,
    /// One had the line, modified.
    Modified,
}

/// Translation of the data address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Translation {
    /// In the first or the second TLB: the hardware does not always say which.
    Hit,
    /// In the second TLB.
    SecondHit,
    /// Not in a TLB: the page tables were walked.
    Walk,
}

/// Source of a sampled access, as the hardware reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSource {
    /// The operation; `None` for an instruction that accesses no memory (IBS samples all).
    pub operation: Option<Operation>,
    /// The level that served it, if reported.
    pub level: Option<Level>,
    /// Answer of the other caches.
    pub snoop: Snoop,
    /// Translation of the address, if it says.
    pub translation: Option<Translation>,
    /// Whether it was locked (atomic); `None` if it does not say.
    pub locked: Option<bool>,
}

// mem_op
const LOAD: u64 = 2;
const STORE: u64 = 4;
const PREFETCH: u64 = 8;
// mem_lvl
const MISS: u64 = 4;
const L1: u64 = 8;
const LFB: u64 = 0x10;
const L2: u64 = 0x20;
const L3: u64 = 0x40;
const LOCAL_RAM: u64 = 0x80;
const REMOTE_RAM: u64 = 0x100 | 0x200;
const REMOTE_CACHE: u64 = 0x400 | 0x800;
const OTHERS: u64 = 0x1000 | 0x2000;
// mem_snoop
const SNOOP_HIT: u64 = 4;
const SNOOP_MODIFIED: u64 = 0x10;
// mem_lock
const LOCK_UNKNOWN: u64 = 1;
const LOCKED: u64 = 2;
// mem_dtlb
const TLB_HIT: u64 = 2;
const TLB_MISS: u64 = 4;
const TLB_L1: u64 = 8;
const TLB_L2: u64 = 0x10;
// mem_snoopx
const FORWARDED: u64 = 1;
const PEER: u64 = 2;

impl DataSource {
    /// Decodes the word.
    ///
    /// ```
    /// use loads::recorded::{DataSource, Level, Operation, Translation};
    ///
    /// // `perf script -F data_src`: OP LOAD|LVL L3 or L3 hit|SNP None|TLB L2 miss|LCK No
    /// let found = DataSource::of(0x10650100842);
    /// assert_eq!((found.operation, found.level), (Some(Operation::Load), Some(Level::L3)));
    /// assert_eq!((found.translation, found.locked), (Some(Translation::Walk), Some(false)));
    /// ```
    pub fn of(word: u64) -> Self {
        let bits = |first: u32, length: u32| word >> first & ((1 << length) - 1);
        let operation = match bits(0, 5) {
            op if op & LOAD != 0 => Some(Operation::Load),
            op if op & STORE != 0 => Some(Operation::Store),
            op if op & PREFETCH != 0 => Some(Operation::Prefetch),
            _ => None,
        };
        let snoop = match (bits(19, 5), bits(38, 2)) {
            (snoop, _) if snoop & SNOOP_MODIFIED != 0 => Snoop::Modified,
            (snoop, more) if snoop & SNOOP_HIT != 0 || more & (FORWARDED | PEER) != 0 => Snoop::Hit,
            _ => Snoop::None,
        };
        let translation = match bits(26, 7) {
            tlb if tlb & TLB_MISS != 0 => Some(Translation::Walk),
            tlb if tlb & TLB_HIT != 0 && tlb & (TLB_L1 | TLB_L2) == TLB_L2 => {
                Some(Translation::SecondHit)
            }
            tlb if tlb & TLB_HIT != 0 => Some(Translation::Hit),
            _ => None,
        };
        let locked = match bits(24, 2) {
            lock if lock & LOCKED != 0 => Some(true),
            lock if lock & LOCK_UNKNOWN != 0 => None,
            // Kernels set no bit for an access that is not locked.
            _ => Some(false),
        };
        let mask = bits(5, 14);
        let level = by_number(bits(33, 4), bits(37, 1) != 0, mask).or_else(|| by_mask(mask));
        Self { operation, level, snoop, translation, locked }
    }
}

/// By `mem_lvl_num`. A miss of a cache by the mask leaves open what served it.
fn by_number(number: u64, remote: bool, mask: u64) -> Option<Level> {
    let missed = mask & MISS != 0;
    Some(match number {
        1..=3 if missed => Level::Other,
        1 | 7 => Level::L1,
        12 => Level::Lfb,
        // 5: a buffer of misses of the second cache.
        2 | 5 => Level::L2,
        // 11: any cache, of another core or node.
        3 | 4 | 11 if remote => Level::RemoteCache,
        3 | 4 => Level::L3,
        11 => Level::L3,
        13 if remote => Level::RemoteRam,
        13 => Level::Ram,
        6 | 8..=10 | 14 => Level::Other,
        _ => return None,
    })
}

fn by_mask(mask: u64) -> Option<Level> {
    let has = |bits: u64| mask & bits != 0;
    let known = L1 | LFB | L2 | L3 | LOCAL_RAM | REMOTE_RAM | REMOTE_CACHE | OTHERS;
    Some(match () {
        () if has(REMOTE_RAM) => Level::RemoteRam,
        () if has(REMOTE_CACHE) => Level::RemoteCache,
        () if has(LOCAL_RAM) => Level::Ram,
        () if has(OTHERS) => Level::Other,
        () if !has(known) => return None,
        () if has(MISS) => Level::Other,
        () if has(L3) => Level::L3,
        () if has(L2) => Level::L2,
        () if has(LFB) => Level::Lfb,
        () => Level::L1,
    })
}

/// The capability bit of the longer field of sources (Zen 4).
const LONG_SOURCES: u32 = 1 << 11;
/// Words: control, RIP, data, data 2, data 3, linear address, physical address.
const DATA_2: usize = 3;
const DATA_3: usize = 4;
const LINEAR: usize = 5;
const PHYSICAL: usize = 6;

/// A sampled µop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IbsOp {
    /// Where its data came from.
    pub source: DataSource,
    /// Cycles from the miss of the first cache until the data came.
    pub latency: Option<u32>,
    /// Misses of the first cache that were under way when its data came, itself included.
    pub open: Option<u32>,
    /// Data address.
    pub address: Option<u64>,
    /// Physical data address.
    pub physical: Option<u64>,
}

impl IbsOp {
    /// Decodes the raw data; `None` if they are too short.
    pub fn of(raw: &[u8]) -> Option<Self> {
        let (capabilities, words) = raw.split_first_chunk::<4>()?;
        let long = u32::from_le_bytes(*capabilities) & LONG_SOURCES != 0;
        let (words, _) = words.as_chunks::<8>();
        let word = |at: usize| words.get(at).map(|bytes| u64::from_le_bytes(*bytes));
        let (sources, data) = (word(DATA_2)?, word(DATA_3)?);
        let bit = |n: u32| data >> n & 1 != 0;
        let operation = match (bit(21), bit(0), bit(1)) {
            (true, ..) => Some(Operation::Prefetch),
            (_, true, _) => Some(Operation::Load),
            (_, _, true) => Some(Operation::Store),
            _ => None,
        };
        let missed = bit(7);
        // Neither the level nor the other requests are known if the miss took no buffer (erratum 1293).
        let has_buffer = !bit(16) && !bit(21);
        let level = match (missed, has_buffer) {
            (false, _) => Some(Level::L1),
            (true, false) => None,
            (true, true) if !bit(20) => Some(Level::L2),
            (true, true) => source(sources, long),
        };
        let translation = match (bit(2), bit(3)) {
            (true, true) => Translation::Walk,
            (true, false) => Translation::SecondHit,
            _ => Translation::Hit,
        };
        let source = DataSource {
            operation,
            level: level.filter(|_| operation.is_some()),
            snoop: Snoop::None,
            translation: operation.map(|_| translation),
            locked: operation.map(|_| bit(15)),
        };
        let some = |value: u64| u32::try_from(value).ok().filter(|value| *value > 0);
        // Only loads have a latency.
        let latency = some(data >> 32 & 0xffff);
        Some(Self {
            source,
            latency: latency.filter(|_| missed && operation == Some(Operation::Load)),
            open: some(data >> 26 & 0x3f).filter(|_| missed && has_buffer),
            address: word(LINEAR).filter(|_| bit(17)),
            physical: word(PHYSICAL).filter(|_| bit(18)),
        })
    }
}

/// The level that served a miss of the second cache.
fn source(word: u64, long: bool) -> Option<Level> {
    let remote = word >> 4 & 1 != 0;
    let number = if long { (word >> 3 & 0x18) | (word & 7) } else { word & 7 };
    Some(match (number, long) {
        (0, _) => return None,
        (1, true) | (2, false) if !remote => Level::L3,
        (3, _) if !remote => Level::Ram,
        (3, _) => Level::RemoteRam,
        (1 | 2 | 5, true) | (2 | 4, false) => Level::RemoteCache,
        _ => Level::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of a real recording, as `perf script -F data_src` of perf 6.1 writes them.
    #[test]
    fn words_of_a_recording() {
        let of = |word| {
            let found = DataSource::of(word);
            assert_eq!(found.operation, Some(Operation::Load));
            (found.level, found.translation, found.locked)
        };
        let hit = Some(Translation::Hit);
        assert_eq!(of(0x118_6810_0242), (Some(Level::Lfb), hit, Some(false)));
        assert_eq!(of(0x102_6a10_0142), (Some(Level::L1), hit, Some(true)));
        assert_eq!(of(0x104_6810_0442), (Some(Level::L2), hit, Some(false)));
        assert_eq!(of(0x106_5010_0842), (Some(Level::L3), Some(Translation::Walk), Some(false)));
    }

    /// By hand from the kernel's header: values that arch/x86/events/intel/ds.c and amd/ibs.c make.
    #[test]
    fn words_that_only_have_one_of_both_levels() {
        let level = |word: u64| DataSource::of(word).level;
        // OP LOAD, LVL HIT | REM_CCE1, SNOOP HITM; without a number.
        let remote = 2 | (2 | 0x400) << 5 | 0x10 << 19;
        assert_eq!(level(remote), Some(Level::RemoteCache));
        assert_eq!(DataSource::of(remote).snoop, Snoop::Modified);
        // LVLNUM RAM, with and without REMOTE; LVLNUM NA.
        assert_eq!(level(2 | 13 << 33), Some(Level::Ram));
        assert_eq!(level(2 | 13 << 33 | 1 << 37), Some(Level::RemoteRam));
        assert_eq!(level(2 | 1 << 5 | 15 << 33), None);
        // Skylake's source 0: not L3, nothing else is known.
        assert_eq!(level(2 | (4 | 0x40) << 5 | 3 << 33), Some(Level::Other));
        // An instruction of IBS that accesses no memory.
        assert_eq!(DataSource::of(1 | 1 << 5).operation, None);
    }

    fn raw(capabilities: u32, data_2: u64, data_3: u64) -> Vec<u8> {
        let words = [0, 0x40_1000, 0, data_2, data_3, 0xdead_0000, 0x7700];
        let words = words.iter().flat_map(|word: &u64| word.to_le_bytes());
        capabilities.to_le_bytes().into_iter().chain(words).collect()
    }

    /// By hand from the register description.
    #[test]
    fn registers_of_loads() {
        let load = 1 | 1 << 17;
        let hit = IbsOp::of(&raw(LONG_SOURCES, 0, load)).unwrap();
        assert_eq!((hit.source.level, hit.latency, hit.open), (Some(Level::L1), None, None));
        assert_eq!((hit.address, hit.physical), (Some(0xdead_0000), None));
        let second = IbsOp::of(&raw(LONG_SOURCES, 0, load | 1 << 7 | 14 << 32)).unwrap();
        assert_eq!((second.source.level, second.latency), (Some(Level::L2), Some(14)));
        let memory = load | 1 << 7 | 1 << 20 | 6 << 26 | 400 << 32 | 1 << 2 | 1 << 3;
        let far = IbsOp::of(&raw(LONG_SOURCES, 3 | 1 << 4, memory)).unwrap();
        assert_eq!((far.source.level, far.open), (Some(Level::RemoteRam), Some(6)));
        assert_eq!(far.source.translation, Some(Translation::Walk));
        // This number means another source without the longer field.
        assert_eq!(IbsOp::of(&raw(0, 2, memory)).unwrap().source.level, Some(Level::L3));
        let near = IbsOp::of(&raw(LONG_SOURCES, 2, memory)).unwrap();
        assert_eq!(near.source.level, Some(Level::RemoteCache));
        let prefetch = IbsOp::of(&raw(0, 2, memory | 1 << 21)).unwrap();
        assert_eq!(prefetch.source.operation, Some(Operation::Prefetch));
        assert_eq!(IbsOp::of(&raw(0, 0, 0)).unwrap().source.operation, None);
        assert_eq!(IbsOp::of(&[0; 20]), None);
    }
}
