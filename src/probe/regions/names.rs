//! Names in the memory of a program, each read once.

use crate::process::Memory;
use std::collections::BTreeMap;

/// Longest name in bytes; the rest is cut off.
const LONGEST: usize = 256;
/// Most names.
const MOST: usize = 10_000;

/// The names of all processes.
#[derive(Debug, Default)]
pub struct Names {
    memories: BTreeMap<i32, Option<Memory>>,
    known: BTreeMap<(i32, u64), usize>,
    numbers: BTreeMap<String, usize>,
}

impl Names {
    /// The number of a name.
    pub fn number(&mut self, name: &str, all: &mut Vec<String>) -> usize {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        if all.len() < MOST {
            return self.add(name, all);
        }
        // One name more than the limit, for all others.
        match self.numbers.get(OTHERS) {
            Some(others) => *others,
            None => self.add(OTHERS, all),
        }
    }

    fn add(&mut self, name: &str, all: &mut Vec<String>) -> usize {
        all.push(name.to_owned());
        self.numbers.insert(name.to_owned(), all.len() - 1);
        all.len() - 1
    }

    /// The number of the name at an address of a process.
    pub fn at(&mut self, process: i32, address: u64, all: &mut Vec<String>) -> usize {
        if let Some(known) = self.known.get(&(process, address)) {
            return *known;
        }
        let memory = self.memories.entry(process).or_insert_with(|| Memory::open(process).ok());
        let name = memory.as_ref().and_then(|memory| read(memory, address));
        let number = match name {
            Some(name) => self.number(&name, all),
            None => self.number(&format!("(unreadable name at {address:#x})"), all),
        };
        // Beyond the limit, names are read each time.
        if self.known.len() < MOST {
            self.known.insert((process, address), number);
        }
        number
    }

    /// A process has ended, or executes another program.
    pub fn forget(&mut self, process: i32) {
        self.memories.remove(&process);
        self.known.retain(|(owner, _), _| *owner != process);
    }

    /// Opens the memory of a process before its number could be reused.
    pub fn open(&mut self, process: i32) {
        self.memories.entry(process).or_insert_with(|| Memory::open(process).ok());
    }
}

/// The name of regions beyond [`MOST`].
const OTHERS: &str = "(other names)";

/// Reads a text that ends with 0.
fn read(memory: &Memory, address: u64) -> Option<String> {
    let mut bytes = memory.read(address, LONGEST);
    let end = bytes.iter().position(|byte| *byte == 0);
    // It may end right before unmapped memory.
    bytes.truncate(end.unwrap_or(bytes.len()));
    (end.is_some() || !bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_names_share_one() {
        let (mut names, mut all) = (Names::default(), Vec::new());
        let numbers: Vec<usize> =
            (0..MOST + 3).map(|name| names.number(&name.to_string(), &mut all)).collect();
        assert_eq!(numbers[MOST - 1..], [MOST - 1, MOST, MOST, MOST]);
        assert_eq!((all.len(), &*all[MOST]), (MOST + 1, OTHERS));
        assert_eq!(names.number("7", &mut all), 7);
    }
}
