//! Sites of files → addresses in a process, by its `/proc/PID/maps`.

use super::request::Site;
use std::fs;

/// The address of each site in process `pid`; `None` if its file is not mapped.
pub fn addresses(pid: i32, sites: &[Site]) -> Vec<Option<u64>> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    let find = |site: &Site| maps.lines().find_map(|line| inside(line, site));
    sites.iter().map(find).collect()
}

/// The address, if this mapping holds the site in executable memory.
fn inside(line: &str, site: &Site) -> Option<u64> {
    let mut fields = line.splitn(6, ' ');
    let (from, to) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let path = fields.nth(2)?.trim_start();
    if path != site.path || rights.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let from = u64::from_str_radix(from, 16).ok()?;
    let to = u64::from_str_radix(to, 16).ok()?;
    let address = from.checked_add(site.offset.checked_sub(offset)?)?;
    (address < to).then_some(address)
}

/// The threads of a process.
pub fn threads(pid: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_of_a_file_is_found_in_its_executable_mapping() {
        // As proc_pid_maps(5) shows them.
        let line =
            "55a0c0001000-55a0c0003000 r-xp 00001000 fe:01 42                         /bin/a b";
        let site = |offset| Site { path: "/bin/a b".to_owned(), offset };
        assert_eq!(inside(line, &site(0x1139)), Some(0x55a0_c000_1139));
        assert_eq!(inside(line, &site(0x3000)), None);
        assert_eq!(inside(line, &site(0x10)), None);
        assert_eq!(inside(&line.replace("r-x", "r--"), &site(0x1139)), None);
        assert_eq!(inside(line, &Site { path: "/bin/a".to_owned(), offset: 0x1139 }), None);
    }
}
