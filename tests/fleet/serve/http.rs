//! A client of HTTP/1.1 that reads one answer.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
    headers: BTreeMap<String, String>,
}

impl Answer {
    /// A header; empty if absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// The page at `path`.
pub fn get(address: &str, path: &str) -> Answer {
    asked(address, &format!("GET {path}"))
}

/// The answer to a request line without its version.
pub fn asked(address: &str, line: &str) -> Answer {
    raw(address, format!("{line} HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\n\r\n").as_bytes())
}

/// The answer to these bytes.
pub fn raw(address: &str, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    // It may answer and close before it has read everything.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {answer}"));
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let header = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    };
    let headers = lines.filter_map(header).collect();
    Answer { status: status.expect("a status"), body: body.to_owned(), headers }
}

/// The first file below a folder of folders whose name ends so.
pub fn first_file(folder: &str, end: &str) -> Option<String> {
    let mut folders: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().collect();
    folders.sort_by_key(std::fs::DirEntry::file_name);
    let files = folders.iter().filter_map(|one| std::fs::read_dir(one.path()).ok()).flatten();
    let paths = files.flatten().map(|file| file.path());
    let mut found = paths.filter_map(|path| path.to_str().map(str::to_owned));
    found.find(|path| path.ends_with(end))
}
