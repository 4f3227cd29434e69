//! Statistics of raw records, without decoding samples.
//!
//! Layouts are those of `enum perf_event_type` in linux/perf_event.h.

use super::mapped::Mapped;
use crate::records::format::misc;
use crate::records::kind::{self, LOST, LOST_SAMPLES, MMAP, SAMPLE, THROTTLE};
use crate::records::raw::{Header, headers};
use std::collections::HashMap;

pub(super) use kind::{COMM, MMAP2};
pub(super) use misc::MMAP_BUILD_ID as MISC_BUILD_ID;

/// Statistics of the records of a recording.
#[derive(Debug, Default)]
pub(super) struct RecordStatistics {
    pub samples: u64,
    pub lost: u64,
    pub throttled: u64,
    pub bytes: u64,
    /// Files mapped executable, with the build-id if the record has it, each by one of its mappings.
    pub files: HashMap<(String, Option<Vec<u8>>), Mapped>,
}

impl RecordStatistics {
    /// Adds records; how many there are, and how many of them are samples.
    pub fn add(&mut self, bytes: &[u8]) -> (u32, u32) {
        let (mut records, mut samples) = (0, 0);
        for header in headers(bytes).map_while(Result::ok) {
            records += 1;
            match header.kind {
                SAMPLE => samples += 1,
                // id, lost
                LOST => self.lost += word(header.body, 8),
                LOST_SAMPLES => self.lost += word(header.body, 0),
                THROTTLE => self.throttled += 1,
                MMAP | MMAP2 if header.misc & misc::MMAP_DATA == 0 => self.map(&header),
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
        let half = |at: usize| word(header.body, at) & 0xffff_ffff;
        // Where there is a build-id, device and inode are not recorded.
        let is_known = is_second && build_id.is_none() && word(header.body, 40) != 0;
        let start = word(header.body, 8);
        let mapped = Mapped {
            pid: half(0) as u32,
            start,
            end: start.saturating_add(word(header.body, 16)),
            path: name.to_owned(),
            device: is_known.then(|| (half(32), half(36))),
            inode: is_known.then(|| word(header.body, 40)),
        };
        self.files.insert((name.to_owned(), build_id), mapped);
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
    use crate::records::raw::record;

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
        let mut statistics = RecordStatistics::default();
        assert_eq!(statistics.add(&all.concat()), (4, 1));
        assert_eq!((statistics.samples, statistics.lost), (1, 7));
        let files: Vec<_> = statistics.files.into_keys().collect();
        assert_eq!(files, [("/bin/x".into(), Some(vec![1, 2, 3, 4]))]);
    }
}
