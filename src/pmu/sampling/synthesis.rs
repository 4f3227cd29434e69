//! Synthesizes records of the state before a recording, in the kernel's form: names of threads (COMM), executable
//! mappings (MMAP2), the kernel's text.
//!
//! Their time is 0, so that they precede all other records.

use super::output::{self, COMM, ElsewhereFile, MISC_BUILD_ID, MMAP2, Mapped};
use crate::build_id;
use std::collections::HashMap;
use std::fs;

/// `PERF_RECORD_MISC_KERNEL` and `PERF_RECORD_MISC_USER`.
const MISC_KERNEL: u16 = 1;
const MISC_USER: u16 = 2;
const PROT_READ: u32 = 1;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;
const MAP_SHARED: u32 = 1;
const MAP_PRIVATE: u32 = 2;
/// Longest path that a record takes: its size is 16 bits.
const LONGEST_PATH: usize = 4096;

/// Device, as major and minor number, and inode of a file.
type FileId = (Option<(u64, u64)>, Option<u64>);

/// Synthesizes records.
pub(super) struct Synthesis {
    /// Id of a known event.
    id: u64,
    bytes: Vec<u8>,
    /// By device and inode: the path means another file in another mount namespace.
    build_ids: HashMap<FileId, Option<Vec<u8>>>,
    /// Files that their paths do not lead to.
    elsewhere: Vec<ElsewhereFile>,
}

/// A mapping.
struct Map<'a> {
    pid: u32,
    start: u64,
    end: u64,
    offset: u64,
    protection: u32,
    flags: u32,
    path: &'a str,
    device: Option<(u64, u64)>,
    inode: Option<u64>,
    build_id: Option<Vec<u8>>,
    misc: u16,
}

impl Map<'_> {
    fn mapped(&self) -> Mapped {
        let Self { pid, start, end, path, device, inode, .. } = *self;
        Mapped { pid, start, end, path: path.to_owned(), device, inode }
    }
}

impl Synthesis {
    pub fn new(id: u64) -> Self {
        Self { id, bytes: Vec::new(), build_ids: HashMap::new(), elsewhere: Vec::new() }
    }

    /// The records, and files of theirs that their paths do not lead to.
    pub fn finish(self) -> (Vec<u8>, Vec<ElsewhereFile>) {
        (self.bytes, self.elsewhere)
    }

    /// All processes.
    pub fn all_processes(&mut self) {
        let Ok(all) = fs::read_dir("/proc") else { return };
        for entry in all.flatten() {
            if let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) {
                self.process(pid);
            }
        }
    }

    /// One process: its threads' names and its executable mappings. None if it has ended.
    pub fn process(&mut self, pid: u32) {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let tid = task.file_name().to_str().and_then(|n| n.parse().ok());
            let name = fs::read(task.path().join("comm"));
            if let (Some(tid), Ok(name)) = (tid, name) {
                self.name(pid, tid, name.trim_ascii_end());
            }
        }
        let Ok(maps) = fs::read(format!("/proc/{pid}/maps")) else { return };
        for line in String::from_utf8_lossy(&maps).lines() {
            if let Some(mut map) = parse_map(pid, line) {
                map.build_id = self.build_id(&map);
                self.map(&map);
            }
        }
    }

    /// The kernel and its modules, if their addresses are readable.
    pub fn kernel(&mut self) {
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        if let Some((start, end)) = kernel_text(&symbols) {
            let path = "[kernel.kallsyms]_text";
            let build_id = build_id::of_kernel();
            self.kernel_map(start, end, start, path, build_id);
        }
        let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
        for line in modules.lines() {
            if let Some((name, start, size)) = parse_module(line) {
                let notes = format!("/sys/module/{name}/notes/.note.gnu.build-id");
                let build_id = fs::read(notes).ok().and_then(|n| build_id::in_notes(&n));
                let end = start.saturating_add(size);
                self.kernel_map(start, end, 0, &format!("[{name}]"), build_id);
            }
        }
    }

    fn kernel_map(&mut self, start: u64, end: u64, offset: u64, path: &str, id: Option<Vec<u8>>) {
        self.map(&Map {
            pid: u32::MAX,
            start,
            end,
            offset,
            protection: PROT_READ | PROT_EXEC,
            flags: MAP_PRIVATE,
            path,
            device: None,
            inode: None,
            build_id: id,
            misc: MISC_KERNEL,
        });
    }

    /// Build-id of a mapped file.
    fn build_id(&mut self, map: &Map<'_>) -> Option<Vec<u8>> {
        let mapped = map.mapped();
        if !mapped.is_of_file() {
            return None;
        }
        if let Some(known) = self.build_ids.get(&(map.device, map.inode)) {
            return known.clone();
        }
        let file = mapped.open();
        let id = file.as_ref().and_then(build_id::of);
        if let (Some(file), Some(id)) = (file, &id) {
            output::add(&mut self.elsewhere, map.path, file, id);
        }
        self.build_ids.insert((map.device, map.inode), id.clone());
        id
    }

    /// COMM: pid, tid, name.
    fn name(&mut self, pid: u32, tid: u32, name: &[u8]) {
        let mut body = Vec::with_capacity(64);
        body.extend(pid.to_le_bytes());
        body.extend(tid.to_le_bytes());
        push_name(&mut body, name);
        self.push(COMM, MISC_USER, pid, tid, body);
    }

    /// MMAP2: pid, tid, addr, len, pgoff, build-id or device and inode, prot, flags, path.
    fn map(&mut self, map: &Map<'_>) {
        let tid = if map.misc == MISC_KERNEL { 0 } else { map.pid };
        let mut body = Vec::with_capacity(192);
        body.extend(map.pid.to_le_bytes());
        body.extend(tid.to_le_bytes());
        body.extend(map.start.to_le_bytes());
        body.extend(map.end.saturating_sub(map.start).to_le_bytes());
        body.extend(map.offset.to_le_bytes());
        let mut identity = [0; 24];
        let mut misc = map.misc;
        if let Some(id) = map.build_id.as_ref().filter(|id| id.len() <= 20) {
            misc |= MISC_BUILD_ID;
            identity[0] = id.len() as u8;
            identity[4..4 + id.len()].copy_from_slice(id);
        } else if let (Some((major, minor)), Some(inode)) = (map.device, map.inode) {
            identity[..4].copy_from_slice(&(major as u32).to_le_bytes());
            identity[4..8].copy_from_slice(&(minor as u32).to_le_bytes());
            identity[8..16].copy_from_slice(&inode.to_le_bytes());
        }
        body.extend(identity);
        body.extend(map.protection.to_le_bytes());
        body.extend(map.flags.to_le_bytes());
        push_name(&mut body, map.path.as_bytes());
        self.push(MMAP2, misc, map.pid, tid, body);
    }

    /// A record with the fields of `sample_id_all` at its end: pid, tid, time, CPU, id.
    fn push(&mut self, kind: u32, misc: u16, pid: u32, tid: u32, mut body: Vec<u8>) {
        body.extend(pid.to_le_bytes());
        body.extend(tid.to_le_bytes());
        body.extend(0u64.to_le_bytes());
        body.extend(0u64.to_le_bytes());
        body.extend(self.id.to_le_bytes());
        let Ok(size) = u16::try_from(body.len() + 8) else { return };
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(misc.to_le_bytes());
        self.bytes.extend(size.to_le_bytes());
        self.bytes.extend(body);
    }
}

/// Appends a name in the form of records: ended by a zero, padded to eight bytes.
fn push_name(body: &mut Vec<u8>, name: &[u8]) {
    body.extend(&name[..name.len().min(LONGEST_PATH)]);
    body.push(0);
    body.resize(body.len().next_multiple_of(8), 0);
}

/// A line of /proc/PID/maps (proc_pid_maps(5)): `start-end perms offset device inode path`; `None`
/// unless it is executable.
fn parse_map(pid: u32, line: &str) -> Option<Map<'_>> {
    let mut rest = line;
    let mut next = || {
        let (field, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after.trim_start();
        field
    };
    let (start, end) = next().split_once('-')?;
    let permissions = next();
    let offset = u64::from_str_radix(next(), 16).ok()?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let device = next().split_once(':').and_then(|(major, minor)| hex(major).zip(hex(minor)));
    let inode = next().parse().ok();
    let has = |letter: char, bit: u32| if permissions.contains(letter) { bit } else { 0 };
    let protection = has('r', PROT_READ) | has('w', PROT_WRITE) | has('x', PROT_EXEC);
    (protection & PROT_EXEC != 0).then_some(Map {
        pid,
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        offset,
        protection,
        flags: if permissions.contains('s') { MAP_SHARED } else { MAP_PRIVATE },
        path: if rest.is_empty() { "//anon" } else { rest },
        device,
        inode,
        build_id: None,
        misc: MISC_USER,
    })
}

/// From `_stext` to `_etext`; `None` if addresses are hidden (all zero) or absent.
fn kernel_text(symbols: &str) -> Option<(u64, u64)> {
    let is = |line: &&str, name: &str| line.ends_with(name) && line.split(' ').nth(2) == Some(name);
    let address = |line: &str| u64::from_str_radix(line.split(' ').next()?, 16).ok();
    // One is at the start of some 100,000 lines, the other near their end.
    let start = address(symbols.lines().find(|l| is(l, "_stext"))?)?;
    let end = address(symbols.lines().rfind(|l| is(l, "_etext"))?)?;
    (start != 0 && start < end).then_some((start, end))
}

/// A line of /proc/modules: `name size users dependents state address`.
fn parse_module(line: &str) -> Option<(&str, u64, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let start = u64::from_str_radix(fields.get(5)?.strip_prefix("0x")?, 16).ok()?;
    let is_name = fields[0].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (start != 0 && is_name).then_some((fields[0], start, fields[1].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::output::RecordStatistics;
    use super::*;
    use crate::records::raw::headers;

    #[test]
    fn lines_of_maps_are_understood() {
        // Lines as proc_pid_maps(5) shows them.
        let map = parse_map(7, "00400000-00452000 r-xp 00001000 08:02 173521   /usr/bin/db us");
        let map = map.expect("executable");
        assert_eq!((map.start, map.end, map.offset), (0x40_0000, 0x45_2000, 0x1000));
        assert_eq!((map.path, map.protection, map.flags), ("/usr/bin/db us", 5, MAP_PRIVATE));
        assert_eq!((map.device, map.inode), (Some((8, 2)), Some(173_521)));
        let anonymous = parse_map(7, "35b1a21000-35b1a22000 rwxs 00000000 00:00 0").expect("x");
        assert_eq!((anonymous.path, anonymous.flags), ("//anon", MAP_SHARED));
        assert!(parse_map(7, "00651000-00652000 r--p 00051000 08:02 173521 /usr/bin/db").is_none());
        for line in ["", "x", "1-2", "1-2 r-xp", "g-h r-xp 0 0 0 a"] {
            assert!(parse_map(7, line).is_none(), "{line}");
        }
    }

    #[test]
    fn hidden_kernel_addresses_give_no_mapping() {
        let text = "ffffffff81000000 T _stext\nffffffff81000000 t x\nffffffff81e00000 T _etext\n";
        assert_eq!(kernel_text(text), Some((0xffff_ffff_8100_0000, 0xffff_ffff_81e0_0000)));
        // The content of /proc/kallsyms if kptr_restrict hides addresses.
        let hidden = "0000000000000000 T _stext\n0000000000000000 t x\n0000000000000000 T _etext\n";
        assert_eq!(kernel_text(hidden), None);
        assert_eq!(kernel_text(""), None);
        let module = "xfs 2 0 - Live 0xffffffffa0000000";
        assert_eq!(parse_module(module), Some(("xfs", 0xffff_ffff_a000_0000, 2)));
        assert_eq!(parse_module("xfs 2 0 - Live 0x0000000000000000"), None);
    }

    #[test]
    fn our_own_program_is_among_our_mappings() {
        let mut made = Synthesis::new(42);
        made.process(std::process::id());
        let (bytes, elsewhere) = made.finish();
        assert!(elsewhere.is_empty(), "our own files are where their paths lead");
        assert!(headers(&bytes).all(|h| h.is_ok_and(|h| h.body.ends_with(&42u64.to_le_bytes()))));
        let mut statistics = RecordStatistics::default();
        statistics.add(&bytes);
        let us = std::env::current_exe().expect("a path").display().to_string();
        let all: Vec<_> = statistics.files.keys().map(|(path, _)| path).collect();
        assert!(all.contains(&&us), "{us}: {all:?}");
    }
}
