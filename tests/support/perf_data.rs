//! perf.data written byte by byte, after perf's `tools/perf/util/header.h`, `Documentation/perf.data-file-format.txt` and
//! `struct perf_event_attr`.

use std::collections::BTreeMap;

/// Bytes of the header of a file.
const HEADER: usize = 104;
/// Bytes of `perf_event_attr` of Linux 6.1.
const ATTRIBUTE: usize = 128;
/// The feature section of event descriptions, and that of the architecture.
const DESCRIPTIONS: u32 = 12;
pub const ARCHITECTURE: u32 = 6;
pub const HOST: u32 = 3;
/// `attr.sample_id_all`.
pub const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Words one after the other.
pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// A record with its header.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = (8 + body.len()) as u16;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// A text of a record: until a zero, in whole words.
pub fn padded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(bytes.len() / 8 * 8 + 8, 0);
    bytes
}

/// A string of a feature section.
pub fn string(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 64 * 64 + 64, 0);
    [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
}

/// A raw event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Event<'a> {
    pub name: &'a str,
    /// What its samples carry to name it.
    pub id: u64,
    pub config: u64,
    pub config1: u64,
    pub period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    /// The flags after `read_format`.
    pub flags: u64,
}

impl Event<'_> {
    fn attribute(&self) -> Vec<u8> {
        let mut all = [0; ATTRIBUTE / 8];
        // PERF_TYPE_RAW, and the size of the attribute.
        all[0] = 4 | (ATTRIBUTE as u64) << 32;
        (all[1], all[2], all[3], all[4]) =
            (self.config, self.period, self.sample_type, self.read_format);
        (all[5], all[7]) = (self.flags, self.config1);
        words(&all)
    }
}

/// What is known of a recording beside its records.
#[derive(Debug, Clone)]
pub struct PerfData<'a> {
    pub events: Vec<Event<'a>>,
    /// Feature sections by number, without the descriptions of events.
    pub sections: BTreeMap<u32, Vec<u8>>,
}

impl PerfData<'_> {
    /// A file with these records.
    pub fn file(&self, records: &[u8]) -> Vec<u8> {
        let events = self.events.len();
        let (attributes, row) = (HEADER + 8 * events, ATTRIBUTE + 16);
        let data = attributes + events * row;
        let mut sections = self.sections.clone();
        sections.insert(DESCRIPTIONS, self.descriptions());
        let mut file = b"PERFILE2".to_vec();
        let places = [HEADER, row, attributes, events * row, data, records.len()];
        file.extend(words(&places.map(|place| place as u64)));
        let bits = sections.keys().map(|number| 1 << number).sum();
        file.extend(words(&[0, 0, bits, 0, 0, 0]));
        file.extend(words(&self.events.iter().map(|event| event.id).collect::<Vec<_>>()));
        for (number, event) in self.events.iter().enumerate() {
            file.extend(event.attribute());
            file.extend(words(&[(HEADER + 8 * number) as u64, 8]));
        }
        file.extend(records);
        let mut at = (file.len() + 16 * sections.len()) as u64;
        for section in sections.values() {
            file.extend(words(&[at, section.len() as u64]));
            at += section.len() as u64;
        }
        sections.values().for_each(|section| file.extend(section));
        file
    }

    /// The same as a stream, as perf writes into a pipe; of the sections it has the descriptions of events.
    pub fn stream(&self, records: &[u8]) -> Vec<u8> {
        let mut stream = [b"PERFILE2".to_vec(), words(&[16])].concat();
        for event in &self.events {
            stream.extend(record(64, 0, &[event.attribute(), words(&[event.id])].concat()));
        }
        let names = [words(&[DESCRIPTIONS.into()]), self.descriptions()].concat();
        [stream, record(80, 0, &names), records.to_vec()].concat()
    }

    fn descriptions(&self) -> Vec<u8> {
        let mut section = words(&[self.events.len() as u64 | (ATTRIBUTE as u64) << 32]);
        for event in &self.events {
            section.extend(event.attribute());
            section.extend(1_u32.to_le_bytes());
            section.extend(string(event.name));
            section.extend(words(&[event.id]));
        }
        section
    }
}
