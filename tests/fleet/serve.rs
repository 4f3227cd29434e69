//! `tdtool serve` as Prometheus, a browser and hostile clients meet it.

mod http;
mod numbers;
mod open_metrics;

use crate::support::child::{Limited as _, Running};
use crate::support::files::{Folder, root};
use crate::support::run::{command, ended, run, send, start};
use crate::support::wait::until;
use http::{asked, get, raw};
use nix::sys::signal::Signal;
use open_metrics::{Kind, Metrics, parse};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// An exporter that runs, and its address.
struct Serving {
    child: Running,
    address: String,
}

impl Serving {
    /// With a short interval, on a port that is free.
    fn start(more: &[&str]) -> Self {
        let mut child =
            start(command(["serve", "--listen", "127.0.0.1:0", "--interval", "0.2"]).args(more));
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("the address");
        let address = line.trim().strip_prefix("http://").and_then(|l| l.strip_suffix("/metrics"));
        let address = address.unwrap_or_else(|| panic!("no address: {line:?}")).to_owned();
        Self { child, address }
    }

    fn metrics(&self) -> Metrics {
        let answer = get(&self.address, "/metrics");
        assert_eq!(answer.status, 200);
        assert!(answer.header("content-type").starts_with("application/openmetrics-text"));
        parse(&answer.body)
    }

    /// Metrics after so many intervals.
    fn after(&self, intervals: f64) -> Metrics {
        let mut found = self.metrics();
        let enough = |metrics: &Metrics| metrics.sum("tdtool_intervals_total", &[]) >= intervals;
        until(
            || {
                found = self.metrics();
                enough(&found)
            },
            || format!("{intervals} intervals have not ended"),
        );
        found
    }

    /// Ends it with this signal, which is no failure.
    fn end(self, signal: Signal) {
        send(&self.child, signal);
        let ran = ended(self.child);
        assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""), "{signal}: {}", ran.stdout);
    }
}

#[test]
fn counters_only_grow_and_what_is_not_measured_is_absent() {
    let serving =
        Serving::start(&["--per-socket", "--command", "tdtool", "--command", "none-such"]);
    let mut last = serving.after(2.0);
    for intervals in [3.0, 5.0, 6.0] {
        let now = serving.after(intervals);
        for (series, value) in last.all(Kind::Counter) {
            let after = now.get(series).unwrap_or_else(|| panic!("{series} has gone"));
            assert!(after >= value, "{series}: {value}, then {after}");
        }
        last = now;
    }
    let host = [("scope", "host")];
    let time = last.sum("tdtool_cpu_seconds_total", &host);
    let sockets = last.sum("tdtool_cpu_seconds_total", &[("scope", "socket")]);
    assert!(time > 0.0 && (time - sockets).abs() < 0.1 * time + 0.1, "{time}, {sockets}");
    let absent = [("command", "none-such"), ("reason", "absent")];
    assert_eq!(last.sum("tdtool_not_measured", &absent), 1.0);
    assert_eq!(last.sum("tdtool_cpu_seconds_total", &absent[..1]), 0.0, "absent, and no 0");
    assert!(last.has("tdtool_cpu_seconds_total", &[("command", "tdtool")]));
    let has_tree = last.has("tdtool_node_share", &host);
    let missing = last.has("tdtool_not_measured", &[("scope", "host")]);
    assert!(has_tree || missing, "a tree, or why there is none");
    for own in ["process_cpu_seconds_total", "process_resident_memory_bytes"] {
        assert!(last.sum(own, &[]) > 0.0, "{own}");
    }
    assert_eq!(get(&serving.address, "/healthz").status, 200);
    serving.end(Signal::SIGTERM);
}

#[test]
fn promtool_finds_no_fault() {
    let serving = Serving::start(&[]);
    serving.after(2.0);
    let plain = raw(&serving.address, b"GET /metrics HTTP/1.1\r\nAccept: text/plain\r\n\r\n");
    assert!(plain.header("content-type").starts_with("text/plain;"));
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    promtool.stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut checking) = promtool.start_limited() else {
        eprintln!("skipped: promtool is not installed");
        return;
    };
    let mut input = checking.stdin.take().expect("a pipe");
    input.write_all(plain.body.as_bytes()).expect("promtool reads");
    drop(input);
    let ran = ended(checking);
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    let rules = root().join("docs/guide/fleet/rules.yml");
    run(Command::new("promtool").args(["check", "rules"]).arg(rules)).succeeded();
    serving.end(Signal::SIGINT);
}

#[test]
fn pages_methods_and_paths() {
    let serving = Serving::start(&[]);
    serving.after(1.0);
    let status = |line: &str| asked(&serving.address, line).status;
    assert_eq!(status("GET /"), 200);
    assert_eq!(status("GET /none"), 404);
    assert_eq!(status("POST /metrics"), 405);
    assert_eq!(status("DELETE /"), 405);
    let head = asked(&serving.address, "HEAD /metrics");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert!(head.header("content-length").parse::<usize>().is_ok_and(|length| length > 100));
    serving.end(Signal::SIGTERM);
}

/// Bytes that are no request, a head that never ends, one of a megabyte, a body that never ends, clients that do
/// nothing: others are answered.
#[test]
fn hostile_clients_stop_nothing() {
    let serving = Serving::start(&[]);
    serving.after(1.0);
    let memory = || serving.metrics().sum("process_resident_memory_bytes", &[]);
    let before = memory();
    let garbage: Vec<u8> = (0..10_000_u32).map(|n| (n * 7919 % 251) as u8).collect();
    assert_eq!(raw(&serving.address, &garbage).status, 400);
    let long = [b"GET / HTTP/1.1\r\nA: ".to_vec(), vec![b'a'; 1 << 20]].concat();
    assert_eq!(raw(&serving.address, &long).status, 431);
    let mut body = TcpStream::connect(&serving.address).expect("a connection");
    body.write_all(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").expect("sent");
    // It ends, as no body is read for ever.
    while body.write_all(&[b'1'; 4096]).is_ok() {}
    let mut slow: Vec<TcpStream> = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(&serving.address).expect("a connection");
        let _ = stream.write_all(b"GET / HT");
        slow.push(stream);
    }
    assert_eq!(serving.metrics().sum("tdtool_build_info", &[]), 1.0);
    // Each of them ends without more, well before a test's limit.
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        let mut left = Vec::new();
        if let Err(error) = stream.read_to_end(&mut left) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
    }
    serving.after(2.0);
    let after = memory();
    assert!(after < before + 16e6, "{before} bytes, then {after}");
    serving.end(Signal::SIGTERM);
}

#[test]
fn a_port_in_use_is_an_error_with_a_remedy() {
    let serving = Serving::start(&[]);
    let ran = run(&mut command(["serve", "--listen", &serving.address]));
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines[0].contains(&serving.address), "{lines:?}");
    assert!(lines.iter().any(|l| l.starts_with("try:") && l.contains("--listen")), "{lines:?}");
    serving.end(Signal::SIGTERM);
}

#[test]
fn names_that_the_kernel_cuts_to_the_same_are_wrong_usage() {
    let names = ["--command=a-name-of-many-bytes", "--command=a-name-of-many-others"];
    let ran = run(command(["serve", "--listen", "127.0.0.1:0"]).args(names));
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
}

#[test]
fn series_beyond_the_limit_are_dropped_and_counted() {
    let names: Vec<String> = (0..100).map(|n| format!("--command=name{n}")).collect();
    let mut options: Vec<&str> = names.iter().map(String::as_str).collect();
    options.extend(["--max-series", "100"]);
    let serving = Serving::start(&options);
    let metrics = serving.after(3.0);
    assert!(metrics.len() <= 100, "{}", metrics.len());
    assert!(metrics.sum("tdtool_series_dropped_total", &[]) > 0.0);
    serving.end(Signal::SIGTERM);
}

/// An estimate is read, and read again when its file has changed; a control group that is not there is no failure.
#[test]
fn estimates_and_groups_come_and_go() {
    let folder = Folder::new();
    let file = folder.file("estimate.json");
    let serving = Serving::start(&["--estimate", &file, "--cgroup", "none/such"]);
    let absent = [("reason", "absent")];
    let now = serving.after(1.0);
    assert!(now.has("tdtool_not_measured", &[("command", "estimate"), absent[0]]));
    for node in ["topdown", "cpu"] {
        let of_group = [("cgroup", "none/such"), ("node", node), absent[0]];
        assert!(now.has("tdtool_not_measured", &of_group), "{node}");
    }
    assert_eq!(get(&serving.address, "/healthz").status, 200);
    let evidence = root().join("tests/processors");
    let found = crate::support::files::text(&evidence).to_owned();
    let evidence = http::first_file(&found, ".evidence.json.gz").expect("it is part of the source");
    run(&mut command(["report", &evidence, "--format", "json", "--output", &file])).succeeded();
    let estimated = [("scope", "command"), ("source", "estimated"), ("node", "Backend_Bound")];
    let mut share = None;
    until(
        || {
            let now = serving.metrics();
            share = now.value("tdtool_node_share", &estimated).map(|share| {
                let end = |name| now.value(name, &estimated).expect("an end");
                (end("tdtool_node_share_low"), share, end("tdtool_node_share_high"))
            });
            share.is_some()
        },
        || "the estimate is not read again".to_owned(),
    );
    let (low, share, high) = share.expect("until it is there");
    assert!(0.0 <= low && low <= share && share <= high && high <= 1.0, "{low} {share} {high}");
    serving.end(Signal::SIGTERM);
}

#[test]
fn every_metric_of_the_examples_is_one_that_is_served() {
    let served: BTreeSet<String> =
        fleet::metrics::Family::ALL.iter().map(|family| family.sample()).collect();
    let text = |name: &str| {
        std::fs::read_to_string(root().join("docs/guide").join(name)).expect("an example")
    };
    let rules = text("fleet/rules.yml");
    let recorded: BTreeSet<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect();
    let mut seen = 0;
    for name in ["fleet/rules.yml", "fleet/dashboard.json", "fleet.md"] {
        let text = text(name);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
        for word in text.split(|c| !is_name(c)) {
            if word.starts_with("tdtool_") || word.starts_with("process_") {
                assert!(served.contains(word), "{name}: {word} is not served");
                seen += 1;
            } else if word.starts_with("tdtool:") && word.len() > "tdtool:".len() {
                assert!(recorded.contains(word), "{name}: {word} is not recorded");
            }
        }
    }
    assert!(seen > 20, "only {seen} names");
    let _: serde_json::Value = serde_json::from_str(&text("fleet/dashboard.json")).expect("JSON");
}
