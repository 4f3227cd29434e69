//! The raw data of a sample of `ibs_op` (AMD): a word of capabilities and the registers, as the kernel's
//! `struct perf_ibs_data` (arch/x86/include/asm/amd-ibs.h; registers: AMD PPR 55898, "IBS Op Data 2" and 3).
//!
//! Kernels before 6.1 write no data source, and none writes how many misses were under way.

use super::data_source::{DataSource, Level, Operation, Snoop, Translation};

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
