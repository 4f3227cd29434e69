//! The static probes (USDT) of a file: notes in the format of SystemTap's sys/sdt.h, as `tdtool`'s
//! markers have.

use super::names::contents;
use super::no_code::{NoCode, foreign};
use object::{Object as _, ObjectSection as _};
use std::path::Path;

/// Owner and type of the notes (sys/sdt.h, `_SDT_NOTE_NAME` and `_SDT_NOTE_TYPE`).
const OWNER: &[u8] = b"stapsdt\0";
const TYPE: u32 = 3;

/// A static probe: a `nop` in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticProbe {
    /// Its address (p_vaddr).
    pub at: u64,
    /// Its provider, such as `tdtool`.
    pub provider: String,
    /// Its name, such as `begin`.
    pub name: String,
    /// Locations of its arguments, such as `8@%rdi`.
    pub arguments: String,
}

impl StaticProbe {
    /// The number (in encodings) of the register that holds its first argument.
    pub fn register(&self) -> Option<u8> {
        const NAMES: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15",
        ];
        let register = self.arguments.split(' ').next()?.strip_prefix("8@%")?;
        let number = NAMES.iter().position(|name| *name == register)?;
        u8::try_from(number).ok()
    }
}

/// The static probes of a file in order of address; empty if it has none.
///
/// # Errors
/// It cannot be read, or is not an ELF file of x86-64.
pub fn static_probes(path: &Path) -> Result<Vec<StaticProbe>, NoCode> {
    let data = contents(path)?;
    if let Some(why) = foreign(&data) {
        return Err(why);
    }
    let file = object::File::parse(&*data).map_err(NoCode::Damaged)?;
    let Some(section) = file.section_by_name(".note.stapsdt") else { return Ok(Vec::new()) };
    let base = file.section_by_name(".stapsdt.base").map(|section| section.address());
    let notes = section.uncompressed_data().map_err(NoCode::Notes)?;
    let mut all: Vec<StaticProbe> = Notes(&notes).filter_map(|note| probe(note, base)).collect();
    all.sort_by_key(|probe| probe.at);
    // Code that is dropped by the compiler or linker leaves notes without an address.
    let is_code = |probe: &StaticProbe| {
        file.sections().any(|section| {
            section.kind() == object::SectionKind::Text
                && (section.address()..section.address().saturating_add(section.size()))
                    .contains(&probe.at)
        })
    };
    all.retain(is_code);
    all.dedup_by_key(|probe| probe.at);
    Ok(all)
}

/// Iterates over descriptions of notes with our owner and type, up to a damaged note.
struct Notes<'a>(&'a [u8]);

impl<'a> Iterator for Notes<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let (owner, rest) = (word(self.0, 0)? as usize, self.0.get(12..)?);
            let (length, kind) = (word(self.0, 4)? as usize, word(self.0, 8)?);
            let name = rest.get(..owner)?;
            let rest = rest.get(owner.checked_next_multiple_of(4)?..)?;
            let description = rest.get(..length)?;
            self.0 = rest.get(length.checked_next_multiple_of(4)?..).unwrap_or_default();
            if name == OWNER && kind == TYPE {
                return Some(description);
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Decodes a description: three addresses, three texts. `base` is the current address of the
/// section that the second address refers to; if it has moved since the note was written, so has
/// the probe.
fn probe(description: &[u8], base: Option<u64>) -> Option<StaticProbe> {
    let (addresses, texts) = description.split_at_checked(24)?;
    let address = |number: usize| {
        addresses.get(8 * number..8 * number + 8)?.try_into().ok().map(u64::from_le_bytes)
    };
    let moved = base.zip(address(1)).map_or(0, |(now, then)| now.wrapping_sub(then));
    let mut texts = texts.split(|byte| *byte == 0);
    let mut text = || texts.next().map(|text| String::from_utf8_lossy(text).into_owned());
    let (provider, name, arguments) = (text()?, text()?, text()?);
    Some(StaticProbe { at: address(0)?.wrapping_add(moved), provider, name, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the layout in sys/sdt.h.
    fn note(owner: &[u8], description: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        for word in [owner.len() as u32, description.len() as u32, 3] {
            all.extend(word.to_le_bytes());
        }
        for part in [owner, description] {
            all.extend(part);
            all.resize(all.len().next_multiple_of(4), 0);
        }
        all
    }

    #[test]
    fn notes_of_others_are_skipped_and_prelinked_ones_are_moved() {
        let mut description: Vec<u8> =
            [0x1000_u64, 0x2000, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
        description.extend(b"tdtool\0begin\08@%r12\0");
        let bytes = [note(b"GNU\0", b"abcde"), note(OWNER, &description)].concat();
        let found: Vec<StaticProbe> =
            Notes(&bytes).filter_map(|n| probe(n, Some(0x2100))).collect();
        let text = str::to_owned;
        let (provider, name) = (text("tdtool"), text("begin"));
        let expected = StaticProbe { at: 0x1100, provider, name, arguments: text("8@%r12") };
        assert_eq!(found[0].register(), Some(12));
        assert_eq!(found, [expected]);
        // Cut off anywhere: nothing, and no panic.
        assert!((0..bytes.len()).all(|n| Notes(&bytes[..n]).all(|d| probe(d, None).is_some())));
    }
}
