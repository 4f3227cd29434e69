//! Names of tracepoints by id, from the formats that perf copies into a recording (HEADER_TRACING_DATA): in pipe mode the
//! description of an event may have the id only.
//!
//! Layout: perf's util/trace-event-info.c.

use super::attribute::{half, word};
use std::collections::HashMap;

/// Most bytes that are read: the formats of all tracepoints of a kernel have some 5 MB.
pub const MOST: u64 = 64 << 20;
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// `system:name` by id; of damaged data those before the damage.
pub fn names(data: &[u8]) -> HashMap<u64, String> {
    let mut found = HashMap::new();
    let _ = read(&mut { data }, &mut found);
    found
}

fn read(rest: &mut &[u8], found: &mut HashMap<u64, String>) -> Option<()> {
    take(rest, MAGIC.len()).filter(|start| *start == MAGIC)?;
    string(rest)?;
    // Byte order, size of a long, size of a page.
    take(rest, 6)?;
    for _ in ["header_page", "header_event"] {
        string(rest)?;
        sized(rest)?;
    }
    for _ in 0..number(rest)? {
        sized(rest)?;
    }
    for _ in 0..number(rest)? {
        let system = string(rest)?;
        for _ in 0..number(rest)? {
            if let Some((id, name)) = format(sized(rest)?) {
                found.insert(id, format!("{system}:{name}"));
            }
        }
    }
    Some(())
}

/// Id and name of a tracepoint's format: `name: sched_switch`, `ID: 320`.
fn format(text: &[u8]) -> Option<(u64, String)> {
    let text = String::from_utf8_lossy(text);
    let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let name = tma::text::name(field("name: ")?.trim()).into_owned();
    Some((field("ID: ")?.trim().parse().ok()?, name))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn string(rest: &mut &[u8]) -> Option<String> {
    let length = rest.iter().position(|byte| *byte == 0)?;
    let text = take(rest, length + 1)?;
    Some(tma::text::name(&String::from_utf8_lossy(&text[..length])).into_owned())
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    half(take(rest, 4)?, 0)
}

fn sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = word(take(rest, 8)?, 0)?;
    take(rest, usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes()[..], text].concat()
    }

    fn data() -> Vec<u8> {
        let format = b"name: sched_switch\nID: 320\nformat:\n\tfield:int x;\n";
        let pieces: [Vec<u8>; 10] = [
            [MAGIC, b"0.6\0", &[0, 8], &4096_u32.to_le_bytes()].concat(),
            b"header_page\0".to_vec(),
            sized(b"page"),
            b"header_event\0".to_vec(),
            sized(b"event"),
            0_u32.to_le_bytes().to_vec(),
            1_u32.to_le_bytes().to_vec(),
            b"sched\0".to_vec(),
            1_u32.to_le_bytes().to_vec(),
            sized(format),
        ];
        pieces.concat()
    }

    #[test]
    fn a_tracepoint_has_its_system_and_name() {
        assert_eq!(names(&data()), HashMap::from([(320, "sched:sched_switch".to_owned())]));
    }

    #[test]
    fn damaged_data_have_no_names_and_end() {
        let whole = data();
        for length in 0..whole.len() {
            assert!(names(&whole[..length]).is_empty(), "{length}");
        }
        let many = [&whole[..whole.len() - 80], &[0xff; 80]].concat();
        assert!(names(&many).len() <= 1);
    }
}
