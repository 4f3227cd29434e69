//! Programs and debug files from debuginfod servers: one here, and ones that misbehave.

use super::caches::{ID, found, recorded};
use crate::support::files::{Folder, text};
use crate::support::tools::tool;
use profile::files::{Cache, Debuginfod, Limits, SearchPaths};
use profile::symbols::Symbols;
use std::collections::HashMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server that knows some paths; what is not whole is cut off after this many bytes.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

/// What it sends for a path.
#[derive(Clone)]
enum Answer {
    File(Vec<u8>),
    /// So many bytes without an end.
    Endless,
    /// Nothing, while the connection is open.
    Silence,
    Status(u16),
}

impl Server {
    fn new(answers: HashMap<String, Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        // It ends with the test.
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(path) = path_of(&stream) else { continue };
                let answer = answers.get(&path).cloned().unwrap_or(Answer::Status(404));
                log.lock().unwrap().push(path);
                send(&stream, &answer);
                if matches!(answer, Answer::Silence) {
                    open.push(stream);
                }
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// The path of a request.
fn path_of(mut stream: &TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).ok()?.split(' ').nth(1)?.to_owned())
}

fn send(mut stream: &TcpStream, answer: &Answer) {
    let head = |status: u16, length: usize| {
        format!("HTTP/1.1 {status} -\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
    };
    // The client may hang up.
    let _ = match answer {
        Answer::File(bytes) => stream
            .write_all(head(200, bytes.len()).as_bytes())
            .and_then(|()| stream.write_all(bytes)),
        Answer::Status(status) => stream.write_all(head(*status, 0).as_bytes()),
        Answer::Silence => Ok(()),
        Answer::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 -\r\nConnection: close\r\n\r\n");
            while stream.write_all(&[0x7f; 4096]).is_ok() {}
            Ok(())
        }
    };
}

/// Nothing but these servers and their cache.
fn search(urls: &str, folder: &Folder, limits: Limits) -> SearchPaths {
    let cache = folder.path().join("cache");
    let servers = Some(Arc::new(Debuginfod::new(urls, cache.clone(), limits)));
    let debug = vec![folder.path().join("none")];
    SearchPaths { servers, debug, caches: vec![Cache::Debuginfod(cache)], ..SearchPaths::default() }
}

const PLENTY: Limits = Limits { time: Duration::from_secs(600), bytes: 1 << 30 };

fn path(part: &str) -> String {
    format!("/buildid/{ID}/{part}")
}

#[test]
fn a_server_has_the_program_and_its_debug_file() {
    let folder = Folder::new();
    let Some((program, module, helper)) = recorded(&folder) else { return };
    let (debug, bare) = (folder.path().join("a.debug"), folder.path().join("bare"));
    let Some(_) = tool("objcopy", &["--only-keep-debug", text(&program), text(&debug)]) else {
        return;
    };
    tool("strip", &["-o", text(&bare), text(&program)]);
    fs::remove_file(&program).unwrap();
    let read = |path| Answer::File(fs::read(path).unwrap());
    let answers = [(path("executable"), read(&bare)), (path("debuginfo"), read(&debug))];
    let server = Server::new(HashMap::from(answers));
    let empty = Server::new(HashMap::new());

    assert!(found(SearchPaths::default(), &module, helper).is_err(), "nothing is asked");
    let urls = format!("{} {}/", empty.url, server.url);
    let known = search(&urls, &folder, PLENTY);
    assert_eq!(found(known.clone(), &module, helper), Ok(("helper".into(), true)));
    assert_eq!(known.servers.unwrap().notes(), [""; 0]);
    assert_eq!((empty.asked(), server.asked()), (2, 2));
    for part in ["executable", "debuginfo"] {
        let kept = folder.path().join("cache").join(ID).join(part);
        assert!(kept.is_file(), "{}", kept.display());
    }
    // It is in the cache now.
    assert_eq!(found(search(&urls, &folder, PLENTY), &module, helper), Ok(("helper".into(), true)));
    assert_eq!((empty.asked(), server.asked()), (2, 2));
}

#[test]
fn what_is_not_the_file_is_not_kept() {
    let folder = Folder::new();
    let Some((program, module, helper)) = recorded(&folder) else { return };
    fs::remove_file(&program).unwrap();
    let sh = fs::read("/bin/sh").unwrap();
    for (answer, why) in [
        (Answer::File(sh), "it has another build-id"),
        (Answer::File(b"<html>".to_vec()), "it is not an ELF file"),
        (Answer::Endless, "it has more than 100000 bytes"),
        (Answer::Status(500), "it answers with status 500"),
    ] {
        let limits = match answer {
            Answer::Endless => Limits { bytes: 100_000, ..PLENTY },
            _ => PLENTY,
        };
        let server = Server::new(HashMap::from([(path("executable"), answer)]));
        let known = search(&server.url, &folder, limits);
        let mut symbols = Symbols::new(known.clone());
        assert!(symbols.gap(&module).is_some());
        assert!(Symbols::new(known.clone()).function_at(&module, helper).is_none());
        assert_eq!(server.asked(), 1, "it is asked once");
        let notes = known.servers.unwrap().notes();
        assert!(notes.len() == 1 && notes[0].contains(why), "{notes:?}");
        assert!(!folder.path().join("cache").join(ID).exists(), "nothing is left");
    }
}

#[test]
fn a_silent_server_is_given_up() {
    let folder = Folder::new();
    let Some((program, module, helper)) = recorded(&folder) else { return };
    fs::remove_file(&program).unwrap();
    let server = Server::new(HashMap::from([(path("executable"), Answer::Silence)]));
    let limits = Limits { time: Duration::from_millis(200), ..PLENTY };
    let known = search(&server.url, &folder, limits);
    assert!(found(known.clone(), &module, helper).is_err());
    let notes = known.servers.unwrap().notes();
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn servers_that_need_tls_are_named() {
    let folder = Folder::new();
    let urls = "ima:enforcing https://debuginfod.example.org";
    let known = search(urls, &folder, PLENTY);
    let notes = known.servers.unwrap().notes();
    assert!(
        notes.len() == 1 && notes[0].starts_with("https://debuginfod.example.org "),
        "{notes:?}"
    );
}
