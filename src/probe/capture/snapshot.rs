//! The document of a capture: a measurement can be repeated from it without the program. Numbers and bytes are
//! hexadecimal text.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.snapshot/1";

/// Names of the general-purpose registers, in encoding order.
pub const REGISTERS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Bytes of a page.
const PAGE: usize = crate::plan::PAGE as usize;

/// A block at one of its entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command.
    pub command: Vec<String>,
    /// The file that contains the block.
    pub image: String,
    /// Address of the block's first instruction in the file (p_vaddr).
    #[serde(with = "number")]
    pub address: u64,
    /// Its address in the process.
    #[serde(with = "number")]
    pub running_at: u64,
    /// Number of the entry, from 1, of all threads together.
    pub entry: u64,
    /// Whether control came from outside the loop, so that the trips are those of a whole
    /// execution. Known for the first entry of a thread, and after an execution that was followed
    /// to its end.
    pub from_outside: bool,
    /// Number of other threads of the process.
    pub other_threads: usize,
    /// Whether all other threads were stopped meanwhile.
    pub others_stopped: bool,
    /// General-purpose registers.
    pub registers: Registers,
    /// rflags.
    #[serde(with = "number")]
    pub flags: u64,
    /// Base of the fs segment.
    #[serde(with = "number")]
    pub fs_base: u64,
    /// Base of the gs segment.
    #[serde(with = "number")]
    pub gs_base: u64,
    /// Vector, mask and x87 registers.
    pub vectors: VectorRegisters,
    /// The steps from this entry on.
    pub walk: Walk,
    /// The pages that the walk accessed, as they were at the entry.
    pub pages: Pages,
    /// Mappings of these pages, in the same order.
    pub mapped: Vec<Page>,
    /// Why this entry was chosen and how typical it is, or why none was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// Further executions of the loop, in the same run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Self>,
}

impl AsRef<Walk> for Snapshot {
    fn as_ref(&self) -> &Walk {
        &self.walk
    }
}

/// General-purpose registers in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers(pub [u64; 16]);

impl Serialize for Registers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(REGISTERS.iter().zip(self.0.map(|value| format!("{value:#x}"))))
    }
}

impl<'de> Deserialize<'de> for Registers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<String, String>::deserialize(deserializer)?;
        let mut all = [0; 16];
        for (name, value) in REGISTERS.iter().zip(&mut all) {
            let text = map.get(*name).ok_or_else(|| D::Error::missing_field(name))?;
            *value = parse(text).ok_or_else(|| D::Error::custom(format!("{name}: `{text}`")))?;
        }
        Ok(Self(all))
    }
}

/// Vector, mask and x87 registers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VectorRegisters {
    /// MXCSR.
    pub mxcsr: u32,
    /// zmm0 to zmm31, or as many as there are; bytes that the processor does not have are 0.
    #[serde(with = "arrays")]
    pub zmm: Vec<[u8; 64]>,
    /// Mask registers k0 to k7; empty without AVX-512.
    #[serde(with = "numbers")]
    pub masks: Vec<u64>,
    /// x87 control word.
    pub x87_control: u16,
    /// The x87 registers st(0) to st(7), 80 bits each.
    #[serde(with = "arrays")]
    pub x87: Vec<[u8; 10]>,
}

/// The iterations that were stepped through.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Walk {
    /// Executions of the first instruction, including the entry: the trips of the loop from here on
    /// if it ended by [`End::Left`], otherwise a lower bound. Beyond the limit of iterations they
    /// are counted by breakpoints.
    pub trips: u64,
    /// Why the walk ended.
    pub end: End,
    /// Instructions stepped.
    pub steps: u64,
    /// Calls of functions, which were not stepped through.
    pub calls: u64,
    /// The distinct paths: the branches of one iteration, in order.
    pub paths: Vec<Vec<Branch>>,
    /// For each iteration, the index of its path.
    pub sequence: Vec<u32>,
    /// Accessed pages that could not be read or exceeded the limit.
    #[serde(with = "numbers")]
    pub missing: Vec<u64>,
    /// Pages captured because they are near accessed ones.
    #[serde(with = "numbers", default)]
    pub nearby: Vec<u64>,
    /// The iterations before the first one with a call or an indirect jump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_call: Option<BeforeCall>,
    /// Cache lines of 64 bytes accessed before the first call or indirect jump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// Most of `lines` at one page offset, and thus in one set of the first-level data cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_set: Option<u64>,
    /// General-purpose registers at the exit of the region.
    #[serde(default)]
    pub left_with: Option<Registers>,
    /// General-purpose registers at the first instruction after the iterations of `sequence`, if
    /// they did not leave the region.
    #[serde(default)]
    pub followed_to: Option<Registers>,
}

/// State before the first call or indirect jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeCall {
    /// Whole iterations before it.
    pub iterations: u64,
    /// General-purpose registers at the first instruction after them.
    pub registers: Registers,
}

/// Why a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Control left the region.
    Left,
    /// The limit of iterations, steps or time.
    #[default]
    Limit,
    /// A signal, the end of the process, or an instruction over its time limit.
    Interrupted,
}

/// A branch that was executed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Branch {
    /// Its address (p_vaddr).
    #[serde(with = "number")]
    pub at: u64,
    /// Target (p_vaddr).
    #[serde(with = "number")]
    pub to: u64,
    /// Whether it was taken.
    pub taken: bool,
}

/// Contents of pages, by address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pages(pub BTreeMap<u64, Box<[u8; PAGE]>>);

impl Serialize for Pages {
    /// Address → bytes without zeros at the end.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(address, bytes)| {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            (format!("{address:#x}"), digits(&bytes[..end]))
        }))
    }
}

impl<'de> Deserialize<'de> for Pages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<String, String>::deserialize(deserializer)?;
        let page = |(address, text): (&String, &String)| {
            let (address, bytes) = (parse(address)?, from_digits(text)?);
            let mut page = Box::new([0; PAGE]);
            page.get_mut(..bytes.len())?.copy_from_slice(&bytes);
            Some((address, page))
        };
        let bad = |address: &String| D::Error::custom(format!("not a page: {address}"));
        map.iter()
            .map(|entry| page(entry).ok_or_else(|| bad(entry.0)))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// Mapping of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Its address.
    #[serde(with = "number")]
    pub address: u64,
    /// The mapped file, or a name such as `[heap]` and `[stack]`; empty for other memory.
    pub of: String,
    /// `r`, `w`, `x`, and `p` for private or `s` for shared.
    pub rights: String,
}

/// `0x…`.
pub fn parse(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Two digits for each byte.
pub fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses `digits`.
pub fn from_digits(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

fn read<'de, D: Deserializer<'de>>(text: &str) -> Result<u64, D::Error> {
    parse(text).ok_or_else(|| D::Error::custom(format!("`{text}` is not 0x and digits")))
}

/// A number.
pub mod number {
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes it.
    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:#x}"))
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is not `0x` and hexadecimal digits.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::read::<D>(&String::deserialize(deserializer)?)
    }
}

/// Several numbers.
pub mod numbers {
    use super::read;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes them.
    pub fn serialize<S: Serializer>(values: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| format!("{value:#x}")))
    }

    /// Reads them.
    ///
    /// # Errors
    /// One is not `0x` and hexadecimal digits.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| read::<D>(text)).collect()
    }
}

/// Arrays of bytes, each a text.
pub mod arrays {
    use super::{digits, from_digits};
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes them, two digits for each byte.
    pub fn serialize<S: Serializer, const N: usize>(
        all: &[[u8; N]],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(all.iter().map(|bytes| digits(bytes)))
    }

    /// Reads them.
    ///
    /// # Errors
    /// One does not have two digits for each of `N` bytes.
    pub fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<Vec<[u8; N]>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let array = |text: &String| from_digits(text)?.try_into().ok();
        texts
            .iter()
            .map(|text| array(text).ok_or_else(|| D::Error::custom(format!("not {N} bytes"))))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_read_back_is_the_same() {
        let mut page = Box::new([0; PAGE]);
        page[7] = 0xab;
        let snapshot = Snapshot {
            schema: SCHEMA.to_owned(),
            command: vec!["./a".to_owned()],
            image: "/a".to_owned(),
            address: 0x1139,
            running_at: 0x5555_5555_5139,
            entry: 1000,
            from_outside: true,
            other_threads: 0,
            others_stopped: true,
            registers: Registers(std::array::from_fn(|n| u64::MAX - n as u64)),
            flags: 0x246,
            fs_base: 0x7fff_f7d8_0740,
            gs_base: 0,
            vectors: VectorRegisters {
                mxcsr: 0x1f80,
                zmm: vec![[3; 64]; 32],
                masks: vec![5; 8],
                x87_control: 0x37f,
                x87: vec![[9; 10]; 8],
            },
            walk: Walk {
                trips: 2,
                end: End::Left,
                paths: vec![vec![Branch { at: 1, to: 2, taken: true }], vec![]],
                sequence: vec![0, 1],
                missing: vec![0x1000],
                ..Walk::default()
            },
            pages: Pages(BTreeMap::from([(0x7000, page), (0x8000, Box::new([0; PAGE]))])),
            mapped: Vec::new(),
            chosen: None,
            others: Vec::new(),
        };
        let text = serde_json::to_string(&snapshot).unwrap();
        assert!(text.contains(r#""0x7000":"00000000000000ab""#), "{text}");
        assert!(text.contains(r#""end":"left""#) && text.contains(r#""rax":"0xffffffffffffffff""#));
        assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
        for (right, wrong) in
            [("0x7000", "7000"), ("00000000000000ab", "00zz"), ("\"rbx\"", "\"x\"")]
        {
            assert!(
                serde_json::from_str::<Snapshot>(&text.replace(right, wrong)).is_err(),
                "{wrong}"
            );
        }
    }
}
