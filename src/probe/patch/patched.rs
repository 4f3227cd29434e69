//! What is written over the code of a process, and how it is taken back.

use crate::process::Memory;

/// One jump.
#[derive(Debug)]
pub struct Jump {
    pub at: u64,
    pub bytes: Vec<u8>,
    /// Where it leads.
    pub to: u64,
}

/// How the code of a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// As it was patched.
    Patched,
    /// The program has changed it.
    Changed,
    /// It is not mapped any more.
    Unmapped,
    /// The process has ended.
    Gone,
}

/// Code with jumps written over it.
#[derive(Debug)]
pub struct Patched {
    /// In order of address.
    jumps: Vec<Jump>,
    /// The functions as they were, in order of address.
    before: Vec<(u64, Vec<u8>)>,
}

impl Patched {
    /// Of functions that are `before` so, by address.
    ///
    /// # Errors
    /// A jump lies elsewhere.
    pub fn new(mut before: Vec<(u64, Vec<u8>)>, mut jumps: Vec<Jump>) -> Result<Self, String> {
        before.sort_by_key(|(start, _)| *start);
        jumps.sort_by_key(|jump| jump.at);
        let patched = Self { jumps, before };
        match patched.jumps.iter().all(|jump| patched.original(jump).is_some()) {
            true => Ok(patched),
            false => Err("a jump would lie outside of its function".to_owned()),
        }
    }

    /// Whether the code is as it was, by a function that reads so many bytes from an address on.
    pub fn is_before(&self, read: impl Fn(u64, usize) -> Vec<u8>) -> bool {
        self.before.iter().all(|(start, before)| read(*start, before.len()) == *before)
    }

    /// Whether an address is inside an instruction that is replaced by a jump, and not its first byte.
    pub fn is_inside(&self, address: u64) -> bool {
        let index = self.jumps.partition_point(|jump| jump.at < address).wrapping_sub(1);
        let jump = self.jumps.get(index);
        jump.is_some_and(|jump| address < jump.at + jump.bytes.len() as u64)
    }

    /// The jumps.
    pub fn jumps(&self) -> &[Jump] {
        &self.jumps
    }

    /// What was in the place of a jump.
    fn original(&self, jump: &Jump) -> Option<&[u8]> {
        let index = self.before.partition_point(|(start, _)| *start <= jump.at).wrapping_sub(1);
        let (start, bytes) = self.before.get(index)?;
        let at = (jump.at - start) as usize;
        bytes.get(at..at + jump.bytes.len())
    }

    /// The jumps inside the function that begins at `start` and has so many bytes.
    fn inside(&self, start: u64, length: usize) -> &[Jump] {
        let end = start + length as u64;
        let from = self.jumps.partition_point(|jump| jump.at < start);
        let to = self.jumps.partition_point(|jump| jump.at < end);
        &self.jumps[from..to]
    }

    /// Patches the code; takes that back if not every jump leads where it is to.
    ///
    /// # Errors
    /// The reason why the code is as it was.
    pub fn write(&self, memory: &Memory) -> Result<(), String> {
        let mut failed = None;
        for (start, before) in &self.before {
            let mut after = before.clone();
            for jump in self.inside(*start, before.len()) {
                let at = (jump.at - start) as usize;
                after[at..at + jump.bytes.len()].copy_from_slice(&jump.bytes);
            }
            if after != *before {
                failed = failed.or(memory.write_all(*start, &after).err());
            }
        }
        if failed.is_none() && self.leads(memory) {
            return Ok(());
        }
        for (start, bytes) in &self.before {
            let _ = memory.write_all(*start, bytes);
        }
        Err(match failed {
            Some(error) => format!("its code cannot be written: {error}"),
            None => "a jump does not lead to its trampoline".to_owned(),
        })
    }

    /// Whether every jump leads to its trampoline, as the bytes in memory say.
    fn leads(&self, memory: &Memory) -> bool {
        self.before.iter().all(|(start, before)| {
            let now = memory.read(*start, before.len());
            self.inside(*start, before.len()).iter().all(|jump| {
                let at = (jump.at - start) as usize + 1;
                let distance = now.get(at..at + 4).and_then(|word| word.try_into().ok());
                let to = distance
                    .map(|word| (jump.at + 5).wrapping_add_signed(i32::from_le_bytes(word).into()));
                to == Some(jump.to)
            })
        })
    }

    /// How the code is.
    pub fn condition(&self, memory: &Memory) -> Condition {
        for (start, before) in &self.before {
            let jumps = self.inside(*start, before.len());
            if jumps.is_empty() {
                continue;
            }
            let now = memory.read(*start, before.len());
            if now.len() != before.len() {
                return match memory.holds(*start, before.len()) {
                    None => Condition::Gone,
                    Some(_) => Condition::Unmapped,
                };
            }
            let is_there = |jump: &Jump| {
                let at = (jump.at - start) as usize;
                now[at..at + jump.bytes.len()] == jump.bytes
            };
            if !jumps.iter().all(is_there) {
                return Condition::Changed;
            }
        }
        Condition::Patched
    }

    /// Puts the code back as it was wherever a jump still is; how it was before that. The process is
    /// stopped.
    pub fn restore(&self, memory: &Memory) -> Condition {
        let condition = self.condition(memory);
        for (start, before) in &self.before {
            let now = memory.read(*start, before.len());
            let mut after = now.clone();
            for jump in self.inside(*start, before.len()) {
                let at = (jump.at - start) as usize;
                let range = at..at + jump.bytes.len();
                if now.get(range.clone()) == Some(&jump.bytes[..]) {
                    after[range.clone()].copy_from_slice(&before[range]);
                }
            }
            if after != now {
                // The process may have been killed.
                let _ = memory.write_all(*start, &after);
            }
        }
        condition
    }
}
