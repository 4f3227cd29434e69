//! PMUs as `/sys/bus/event_source/devices` shows them, with their attribute formats.

use super::{Root, parse_cpu_list};
use std::collections::BTreeMap;

/// A PMU registered with the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pmu {
    /// Folder name: `cpu`, `cpu_core`, `msr`, `power`, `uncore_imc_0`.
    pub name: String,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// Format fields: their bits in the config words.
    pub formats: BTreeMap<String, Format>,
    /// CPUs it counts on, if listed (`cpus`, or `cpumask` for PMUs outside the core).
    pub cpus: Option<Vec<u32>>,
    /// The kernel's own events (`events/*`), of those in `KERNEL_EVENTS`: name, text.
    pub events: BTreeMap<String, String>,
    /// `caps/*`, by file name.
    pub caps: BTreeMap<String, String>,
    /// Rotation interval in milliseconds.
    pub mux_interval_ms: Option<u32>,
}

/// The kernel's own events that recordings of loads and branches need, and no table has.
const KERNEL_EVENTS: [&str; 3] = ["mem-loads", "mem-loads-aux", "branch-brs"];

impl Pmu {
    /// Whether it is the PMU of a core.
    pub fn is_core(&self) -> bool {
        matches!(self.name.as_str(), "cpu" | "cpu_core" | "cpu_atom" | "cpu_lowpower")
            || self.name.starts_with("armv8_")
    }
}

/// A word of `perf_event_attr` that a format field can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Config,
    Config1,
    Config2,
}

/// The bits of a format field: `config:0-7,32-35` puts the low 8 bits of the value into bits
/// 0–7 of `config` and the next 4 into bits 32–35 (Documentation/ABI, sysfs-bus-event_source).
///
/// ```
/// use pmu::machine::Format;
///
/// // The event field of AMD's core PMU has 12 bits in two places: perf writes 0x1a0 as r1000000a0.
/// let event = Format::parse("config:0-7,32-35").expect("the form of a format file");
/// let mut words = [0; 3];
/// assert!(event.put(0x1a0, &mut words));
/// assert_eq!(words, [0x1_0000_00a0, 0, 0]);
/// assert!(!event.put(0x1000, &mut words), "13 bits do not fit");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    word: Word,
    ranges: Vec<(u32, u32)>,
}

impl Format {
    /// Parses the text of a format file; `None` if it is of an unknown form.
    pub fn parse(text: &str) -> Option<Self> {
        let (word, ranges) = text.trim().split_once(':')?;
        let word = match word {
            "config" => Word::Config,
            "config1" => Word::Config1,
            "config2" => Word::Config2,
            _ => return None,
        };
        let ranges: Option<Vec<(u32, u32)>> = ranges
            .split(',')
            .map(|r| {
                let (low, high) = r.split_once('-').unwrap_or((r, r));
                let (low, high) = (low.parse().ok()?, high.parse().ok()?);
                (low <= high && high < 64).then_some((low, high))
            })
            .collect();
        Some(Self { word, ranges: ranges? })
    }

    /// Puts `value` into `words` (config, config1, config2); `false` if it has too many bits.
    #[must_use]
    pub fn put(&self, mut value: u64, words: &mut [u64; 3]) -> bool {
        for &(low, high) in &self.ranges {
            let bits = high - low + 1;
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            words[self.word as usize] |= (value & mask) << low;
            value = value.checked_shr(bits).unwrap_or(0);
        }
        value == 0
    }
}

/// All PMUs, by name.
pub fn find_pmus(root: &Root) -> Vec<Pmu> {
    let base = "sys/bus/event_source/devices";
    let read = |name: String| {
        let dir = format!("{base}/{name}");
        let text = |file: &str| root.text(format!("{dir}/{file}"));
        let files = |folder: &str| -> Vec<(String, String)> {
            let path = format!("{dir}/{folder}");
            let named = |f: String| Some((f.clone(), root.text(format!("{path}/{f}"))?));
            root.names(&path).into_iter().filter_map(named).collect()
        };
        let formats = files("format").into_iter();
        Some(Pmu {
            kind: text("type")?.parse().ok()?,
            formats: formats.filter_map(|(f, t)| Some((f, Format::parse(&t)?))).collect(),
            cpus: text("cpus").or_else(|| text("cpumask")).and_then(|t| parse_cpu_list(&t)),
            events: KERNEL_EVENTS
                .iter()
                .filter_map(|event| Some(((*event).to_owned(), text(&format!("events/{event}"))?)))
                .collect(),
            caps: files("caps").into_iter().collect(),
            mux_interval_ms: text("perf_event_mux_interval_ms").and_then(|t| t.parse().ok()),
            name,
        })
    };
    root.names(base).into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_may_be_split_over_ranges() {
        // AMD's 12-bit event code: 0x1a0 goes to 0x1000000a0 (Linux arch/x86/events/amd/core.c).
        let format = Format::parse("config:0-7,32-35").expect("a format");
        let mut words = [0; 3];
        assert!(format.put(0x1a0, &mut words));
        assert_eq!(words, [0x1_0000_00a0, 0, 0]);
        assert!(!format.put(0x1000, &mut words), "13 bits do not fit 12");
    }

    #[test]
    fn whole_words_and_single_bits() {
        let mut words = [0; 3];
        assert!(Format::parse("config1:0-63").expect("a format").put(u64::MAX, &mut words));
        assert!(Format::parse("config:23").expect("a format").put(1, &mut words));
        assert_eq!(words, [1 << 23, u64::MAX, 0]);
    }

    #[test]
    fn nonsense_is_no_format() {
        for text in ["", "config", "config9:0-7", "config:7-0", "config:0-64", "config:x"] {
            assert_eq!(Format::parse(text), None, "{text}");
        }
    }
}
