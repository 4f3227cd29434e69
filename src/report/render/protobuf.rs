//! Messages of protocol buffers, as pprof's profile.proto has them.

use std::collections::HashMap;

/// A message of protocol buffers (protobuf.dev/programming-guides/encoding): only what profile.proto needs.
#[derive(Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number; 0 is the default and left out.
    pub fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    /// Numbers of type int64 in one field.
    pub fn packed(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut all = Self::default();
        values.for_each(|value| all.varint(value.min(i64::MAX as u64)));
        self.bytes(field, &all.0);
    }

    /// Bytes, a text or a message.
    pub fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A message of numbers.
    pub fn message(&mut self, field: u64, of: &[(u64, u64)]) {
        let mut inner = Self::default();
        of.iter().for_each(|(field, value)| inner.number(*field, *value));
        self.bytes(field, &inner.0);
    }
}

/// The strings of a profile; the first is empty.
pub struct Strings {
    all: Vec<String>,
    numbers: HashMap<String, u64>,
}

/// Only the empty one.
impl Default for Strings {
    fn default() -> Self {
        let mut strings = Self { all: Vec::new(), numbers: HashMap::new() };
        strings.number("");
        strings
    }
}

impl Strings {
    /// Writes all as a repeated field.
    pub fn write(&self, field: u64, out: &mut Message) {
        self.all.iter().for_each(|text| out.bytes(field, text.as_bytes()));
    }

    /// The number of a text.
    pub fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}
