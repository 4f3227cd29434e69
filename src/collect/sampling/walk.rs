//! The headers of raw records, and the little that recording itself must know of them.
//!
//! Layouts are those of `enum perf_event_type` in linux/perf_event.h.

use std::collections::HashMap;

/// `PERF_RECORD_*`.
pub(super) const MMAP: u32 = 1;
pub(super) const LOST: u32 = 2;
pub(super) const COMM: u32 = 3;
pub(super) const THROTTLE: u32 = 5;
pub(super) const SAMPLE: u32 = 9;
pub(super) const MMAP2: u32 = 10;
pub(super) const LOST_SAMPLES: u32 = 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`: a build-id stands where device and inode would.
pub(super) const MISC_BUILD_ID: u16 = 1 << 14;
/// `PERF_RECORD_MISC_MMAP_DATA`: not executable.
const MISC_DATA: u16 = 1 << 13;

/// One raw record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// `PERF_RECORD_*`.
    pub kind: u32,
    /// `PERF_RECORD_MISC_*`.
    pub misc: u16,
    /// What follows the header.
    pub body: &'a [u8],
}

/// The records in `bytes`, until one that is not whole: then come the bytes left (never none).
pub fn headers(mut bytes: &[u8]) -> impl Iterator<Item = Result<Header<'_>, &[u8]>> {
    std::iter::from_fn(move || {
        let (header, rest) = match bytes.split_first_chunk::<8>() {
            None if bytes.is_empty() => return None,
            None => return Some(Err(std::mem::take(&mut bytes))),
            Some(split) => split,
        };
        let kind = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let misc = u16::from_le_bytes([header[4], header[5]]);
        let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
        match size.checked_sub(8).and_then(|n| rest.split_at_checked(n)) {
            Some((body, after)) => {
                bytes = after;
                Some(Ok(Header { kind, misc, body }))
            }
            None => Some(Err(std::mem::take(&mut bytes))),
        }
    })
}

/// What the records of a recording add up to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub samples: u64,
    pub lost: u64,
    pub throttled: u64,
    pub bytes: u64,
    /// Files mapped executable, with the build-id where the record has it.
    pub files: HashMap<String, Option<Vec<u8>>>,
}

impl Tally {
    /// Takes in records; how many there are, and how many of them are samples.
    pub fn take(&mut self, bytes: &[u8]) -> (u32, u32) {
        let (mut records, mut samples) = (0, 0);
        for header in headers(bytes).map_while(Result::ok) {
            records += 1;
            match header.kind {
                SAMPLE => samples += 1,
                // id, lost
                LOST => self.lost += word(header.body, 8),
                LOST_SAMPLES => self.lost += word(header.body, 0),
                THROTTLE => self.throttled += 1,
                MMAP | MMAP2 if header.misc & MISC_DATA == 0 => self.map(&header),
                _ => {}
            }
        }
        self.samples += u64::from(samples);
        self.bytes += bytes.len() as u64;
        (records, samples)
    }

    /// pid, tid, addr, len, pgoff, and with MMAP2 device and inode (or build-id), prot, flags;
    /// then the path, ended by a zero.
    fn map(&mut self, header: &Header<'_>) {
        const PROT_EXEC: u64 = 4;
        let is_second = header.kind == MMAP2;
        let name = header.body.get(if is_second { 64 } else { 32 }..).unwrap_or_default();
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        if is_second && word(header.body, 56) & PROT_EXEC == 0 {
            return;
        }
        let build_id = (is_second && header.misc & MISC_BUILD_ID != 0).then(|| {
            let length = header.body.get(32).map_or(0, |n| usize::from(*n).min(20));
            header.body.get(36..36 + length).unwrap_or_default().to_vec()
        });
        let build_id = build_id.filter(|id| !id.is_empty());
        let Ok(name) = std::str::from_utf8(name) else { return };
        match self.files.get_mut(name) {
            None => {
                self.files.insert(name.to_owned(), build_id);
            }
            Some(known) if known.is_none() => *known = build_id,
            Some(_) => {}
        }
    }
}

/// The 64-bit word at `at`; 0 if the body is too short.
fn word(body: &[u8], at: usize) -> u64 {
    let bytes = body.get(at..at + 8).and_then(|b| b.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record by hand, from linux/perf_event.h.
    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(misc.to_le_bytes());
        bytes.extend((body.len() as u16 + 8).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn samples_losses_and_executable_files_are_found() {
        let mut map = vec![0; 64];
        map[32] = 4;
        map[36..40].copy_from_slice(&[1, 2, 3, 4]);
        map[56] = 5;
        map.extend(b"/bin/x\0\0");
        let mut data = map.clone();
        data[56] = 3;
        data[69] = b'y';
        let lost = [[0; 8], 7u64.to_le_bytes()].concat();
        let all = [
            record(9, 2, &[0; 16]),
            record(2, 0, &lost),
            record(10, 1 << 14, &map),
            record(10, 1 << 14, &data),
        ];
        let mut tally = Tally::default();
        assert_eq!(tally.take(&all.concat()), (4, 1));
        assert_eq!((tally.samples, tally.lost), (1, 7));
        assert_eq!(tally.files, HashMap::from([("/bin/x".into(), Some(vec![1, 2, 3, 4]))]));
    }

    #[test]
    fn a_record_that_is_not_whole_ends_the_walk() {
        let whole = record(9, 0, &[1; 8]);
        for (rest, left) in
            [(&[][..], None), (&[9, 0, 0], Some(3)), (&[9, 0, 0, 0, 0, 0, 7, 0], Some(8))]
        {
            let bytes = [&whole, rest].concat();
            let mut found = headers(&bytes);
            assert!(found.next().is_some_and(|r| r.is_ok_and(|h| h.body == [1; 8])));
            assert_eq!(found.next().map(|r| r.unwrap_err().len()), left);
            assert!(found.next().is_none());
        }
    }
}
