//! Texts of files, in every field that has one, through every command and renderer: none reaches a terminal raw.

use crate::profile::made::{self, words};
use crate::session;
use crate::support::child::Limited as _;
use crate::support::files::{Folder, fixture, text};
use crate::support::perf_data::padded;
use crate::support::pty::Pty;
use crate::support::run::tdtool;
use profile::session::{
    BuildId, Chunk, RecordBatch, SampledEvents, SoftwareCounts, StoredCounts, StoredTable,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tma::counts::Counts;

/// Sets a terminal's title, clears the screen by a C1 control, turns the direction of writing, forges a line that begins
/// as none of ours does: names of processors, which are wrapped, have an X.
const EVIL: &str = "e\x1b]0;T\x07\u{9b}2J\u{202e}\r\nQzX";

/// A folder, and what was found wrong with texts that commands show.
struct Shown {
    folder: Folder,
    wrong: Vec<String>,
}

impl Shown {
    fn new() -> Self {
        Self { folder: Folder::new(), wrong: Vec::new() }
    }

    /// Nothing drives a terminal, and no line begins with what the text has after its line end.
    fn judge(&mut self, what: &dyn std::fmt::Debug, shown: &str) {
        let is_bad = |c: char| c.is_control() && c != '\t' || matches!(c, '\u{202a}'..='\u{202e}');
        for line in shown.lines().filter(|line| line.contains(is_bad) || line.starts_with("QzX")) {
            self.wrong.push(format!("{what:?}: {line:?}"));
        }
    }

    /// A text, or a profile for other programs, which show its names as they are.
    fn judge_file(&mut self, what: &dyn std::fmt::Debug, path: &Path) {
        let bytes = fs::read(path).unwrap();
        if !bytes.starts_with(&[0x1f, 0x8b]) {
            return self.judge(what, &String::from_utf8_lossy(&bytes));
        }
        let unpacked =
            std::process::Command::new("gzip").arg("-dc").arg(path).run_limited().unwrap().stdout;
        assert!(!unpacked.is_empty(), "{what:?}");
        if unpacked.windows(2).any(|two| two == b"\x1b]") {
            self.wrong.push(format!("{what:?}: an escape in a name"));
        }
    }

    /// Runs a command; judges what it shows, and what it writes to `OUT`.
    fn by(&mut self, arguments: &[&str]) {
        let output = self.folder.file("out");
        let arguments: Vec<String> =
            arguments.iter().map(|word| word.replace("OUT", &output)).collect();
        let ran = tdtool(&arguments);
        self.judge(&arguments, &ran.stdout);
        self.judge(&arguments, &ran.stderr);
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if text(&path).starts_with(&output) {
                self.judge_file(&arguments, &path);
                fs::remove_file(path).unwrap();
            }
        }
    }

    /// By what shows samples.
    fn by_all_of_samples(&mut self, file: &str) {
        let commands: [&[&str]; 17] = [
            &["report", file],
            &["report", file, "-v"],
            &["report", file, "--ascii"],
            &["report", file, "--format", "json"],
            &["report", file, "--format", "csv"],
            &["report", file, "--format", "json", "-o", "OUT"],
            &["report", file, "--folded", "-"],
            &["report", file, "--folded", "OUT", "--folded-nodes"],
            &["report", file, "--flamegraph", "OUT.svg"],
            &["report", file, "--flamegraph", "OUT.html"],
            &["report", file, "--html", "OUT.html"],
            &["report", file, "--callers", EVIL],
            &["report", file, "--annotate", EVIL],
            &["report", file, "--thread", EVIL],
            &["report", file, "--by", EVIL],
            &["loads", file],
            &["prefetch", file],
        ];
        commands.iter().for_each(|command| self.by(command));
        for option in ["--firefox", "--trace", "--callgrind", "--pprof"] {
            self.by(&["report", file, option, "OUT"]);
        }
        self.by(&["report", file, "--per-function"]);
        for format in ["text", "json", "csv", "profgen", "autofdo", "bolt", "pprof"] {
            self.by(&["branches", file, "--format", format, "-o", "OUT"]);
        }
        for kind in ["loads", "prefetch"] {
            for format in ["json", "csv"] {
                self.by(&[kind, file, "--format", format]);
            }
        }
        for format in ["text", "json", "csv", "markdown", "junit"] {
            let judged = ["diff", file, file, "--fail-if", "main > +5%", "--format", format];
            self.by(&judged);
        }
        self.by(&["diff", file, file, "--flamegraph", "OUT.svg"]);
        self.by_the_screens(file);
    }

    /// By what the drill-down shows of functions, their code, callers and keys.
    fn by_the_screens(&mut self, file: &str) {
        let mut screen = Pty::start(&[file], &[]);
        screen.wait_for("q quit");
        screen.types("\r");
        screen.wait_until("functions", |screen| {
            let text = screen.contents();
            text.contains("Esc back") && !text.contains("reading ")
        });
        self.judge(&"the screen", &screen.text());
        for (keys, drawn) in [("?", "other key closes"), ("q", "Esc back"), ("c", "Esc back")] {
            screen.types(keys);
            screen.wait_for(drawn);
            self.judge(&"the screen", &screen.text());
        }
        screen.types("q");
        screen.end();
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        assert!(std::thread::panicking() || self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}

#[test]
fn texts_of_perf_data_are_tame() {
    let mut shown = Shown::new();
    let thread = 12 << 32 | 11;
    let ids = words(&[thread, 1, 101]);
    let comm = [words(&[thread]), padded(EVIL), ids.clone()].concat();
    let map = [words(&[thread, 0x40_0000, 0x2000, 0]), padded(&format!("/{EVIL}")), ids].concat();
    let samples: Vec<u8> = (0..9).flat_map(|time| made::sample(101, 10 + time)).collect();
    let records = [made::record(3, 0, &comm), made::record(1, 2, &map), samples].concat();
    let mut file = made::file("x86_64", &records);
    // Texts of feature sections have room: 64 bytes.
    for name in ["host", "loads:pp", "stores"] {
        let name = [name.as_bytes(), &[0; 32]].concat();
        let at = file.windows(name.len()).position(|found| found == name).expect("a text");
        file[at..at + EVIL.len()].copy_from_slice(EVIL.as_bytes());
    }
    let file = shown.folder.write("samples.data", file);
    shown.by_all_of_samples(&file);
}

/// Every text of a document.
fn poisoned(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("tdtool.") => value.clone(),
        Value::String(text) => Value::String(format!("{text}{EVIL}")),
        Value::Array(all) => all.iter().map(poisoned).collect(),
        Value::Object(all) => all.iter().map(|(k, v)| (k.clone(), poisoned(v))).collect(),
        other => other.clone(),
    }
}

#[test]
fn texts_of_sessions_are_tame() {
    let mut shown = Shown::new();
    let table = fs::read_to_string("events/amd/zen4.toml").expect("a table");
    let (name, scope) = ("zen4".to_owned(), Some(EVIL.to_owned()));
    let interval = Some((Duration::ZERO, Duration::from_secs(1)));
    let mut chunks = vec![
        Chunk::Table(StoredTable { name: name.clone(), text: table }),
        Chunk::Counts(Box::new(StoredCounts {
            table: name,
            counts: Counts { scope: scope.clone(), interval, ..Counts::default() },
        })),
        Chunk::Software(SoftwareCounts {
            scope,
            interval,
            values: BTreeMap::from([(EVIL.to_owned(), Some(1.0)), ("task-clock".to_owned(), None)]),
        }),
    ];
    let thread = 4712 << 32 | 4711;
    let map = [words(&[thread, 0x0, 0x2000, 0]), padded(&format!("/{EVIL}"))].concat();
    let comm = [words(&[thread]), padded(EVIL)].concat();
    for chunk in session::sampled_chunks() {
        chunks.push(match chunk {
            Chunk::Header(value) => Chunk::Header(poisoned(&value)),
            Chunk::Machine(value) => Chunk::Machine(poisoned(&value)),
            Chunk::End(value) => Chunk::End(poisoned(&value)),
            Chunk::SampledEvents(mut events) => {
                events.events.iter_mut().for_each(|event| event.name = EVIL.to_owned());
                Chunk::SampledEvents(SampledEvents { notes: vec![EVIL.to_owned()], ..events })
            }
            Chunk::BuildIds(_) => Chunk::BuildIds(vec![BuildId::new(EVIL, &[1, 2])]),
            other => other,
        });
    }
    let bytes = [made::record(1, 2, &map), made::record(3, 0, &comm)].concat();
    let names = Chunk::Records(RecordBatch { cpu: None, records: 2, samples: 0, bytes });
    chunks.insert(chunks.len() - 1, names);
    let path = shown.folder.path().join("evil.tds");
    session::write(&path, &chunks);
    shown.by_all_of_samples(text(&path));
    shown.by(&["report", text(&path), "--interval", "1", "--no-code"]);
}

#[test]
fn texts_of_counts_and_documents_are_tame() {
    let mut shown = Shown::new();
    let counts = [
        format!("event,value\n\"{EVIL}\",1000\ncycles,5\n"),
        format!("block,kind,name,value,running_pct\n\"{EVIL}\",event,cycles,5,24\n"),
        format!("trial,event,value\n\"{EVIL}\",TotalSlots,4000\n\"{EVIL}\",FetchBubbles,800\n"),
        format!("1000,,cycles{},100,100.00,,\n", EVIL.replace(['\r', '\n'], "")),
        format!("CPU0{0};1000;{0};cycles;100;100.00;;\n", EVIL.replace(['\r', '\n'], "")),
        format!("{{\"counter-value\":\"5\",\"event\":{0},\"cpu\":{0}}}\n", json!(EVIL)),
    ];
    for (number, rows) in counts.iter().enumerate() {
        let file = shown.folder.write(&format!("counts{number}"), rows);
        for format in ["text", "json", "csv"] {
            shown.by(&["report", &file, "--uarch", "zen4", "--format", format]);
        }
        shown.by(&["report", &file, "--uarch", "zen4", "-v", "--interval", "1"]);
        shown.by(&["tables", "eval", "paper", "--counts", &file]);
        shown.by(&["diff", &file, &file]);
    }
    let counts = text(&fixture("import/zen4-two-intervals.csv")).to_owned();
    let report = tdtool(["report", &counts, "--uarch", "zen4", "--format", "json"]).succeeded();
    let report = shown.folder.write("report.json", poisoned(&report.json()).to_string());
    shown.by(&["diff", &report, &report]);
    shown.by(&["diff", &report, &report, "--format", "csv"]);
    shown.by(&["report", &report]);
    let block =
        poisoned(&json!({ "schema": "tdtool.block/2", "block": { "hex": "90" }, "values": "" }));
    let block = shown.folder.write("block.json", block.to_string());
    shown.by(&["block", "--repeat", &block]);
    let rows = shown.folder.write("rows.csv", format!("hex,name\n90,\"{EVIL}\"\n\"{EVIL}\",a\n"));
    shown.by(&["deps", "--batch", &rows, "-o", "OUT"]);
    shown.by(&["block", "--batch", &rows, "--quick", "--budget", "1", "-o", "OUT"]);
}

#[test]
fn texts_of_tables_and_arguments_are_tame() {
    let mut shown = Shown::new();
    let table = fs::read_to_string("events/amd/zen4.toml").expect("a table");
    let escaped = "e\\u001b]0;T\\u0007\\u009b2J\\u202e\\r\\nQzX";
    let evil = table
        .replace("label = \"", &format!("label = \"{escaped}"))
        .replace("description = \"", &format!("description = \"{escaped}"));
    shown.folder.write("evil/zen4.toml", evil.clone());
    let tables = shown.folder.file("evil");
    shown.by(&["tables", "list", "--tables", &tables]);
    shown.by(&["tables", "show", "zen4", "--tables", &tables]);
    shown.by(&["tables", "plan", "zen4", "--tables", &tables]);
    shown.by(&["tables", "check", "zen4", "--tables", &tables]);
    shown.folder.write("evil/zen4.toml", evil.replace("[facts]", &format!("[\"{escaped}\"]")));
    shown.by(&["tables", "check", "--tables", &tables]);
    for arguments in [
        &["report", EVIL][..],
        &["report", "--", EVIL],
        &["report", "--nodes", EVIL, "--", "true"],
        &["report", "--uarch", EVIL, "--", "true"],
        &["report", "-p", EVIL],
        &["report", "--level", EVIL, "--", "true"],
        &["report", "--format", EVIL, "--", "true"],
        &["record", "-o", EVIL, "-e", EVIL, "--", "true"],
        &["block", EVIL],
        &["block", "--asm", EVIL],
        &["deps", "--asm", EVIL],
        &["count", "--functions", EVIL, "--", "true"],
        &["workload", "run", EVIL],
        &["tables", "show", EVIL],
        &["diff", EVIL, EVIL],
        &[EVIL],
    ] {
        shown.by(arguments);
    }
    assert!(!Path::new(EVIL).exists());
}
