//! Windows of a made-up fleet.

use serde_json::{Value, json};

/// The begin of 2026-12-01, UTC.
pub const DAY: i64 = 1_796_083_200_000;

/// A window of a ring of `host` that begins `minute` minutes into the day, with a binary that used these CPU seconds; the
/// binary has level 1 only.
pub fn window(host: &str, minute: i64, build: &str, seconds: f64) -> Value {
    let owner = json!({"build_id": build, "module": "app"});
    let row = |own: Value| {
        let mut row = json!({"binary": owner, "cgroup": null, "command": null, "socket": null});
        row.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        row
    };
    let node = |node: &str, parent: Option<&str>, level: u32, share: f64| {
        row(json!({
            "node": node, "parent": parent, "level": level, "share": share, "interval": [share - 0.01, share + 0.01],
            "slots": null, "cpu_seconds": seconds, "source": "counted", "missing": null,
        }))
    };
    let mut of_host = node("Memory_Bound", Some("Backend_Bound"), 2, 0.125);
    of_host["binary"] = Value::Null;
    json!({
        "schema": "tdtool.window/1",
        "host": {
            "name": host, "boot": null, "uarch": "emr", "processor": "Emerald Rapids", "kernel": "6.1", "cpus": 8,
            "tool": "0.1.0", "labels": {"instance_type": "c8", "cost_per_hour": "0.8"},
        },
        "start_ms": DAY + minute * 60_000, "seconds": 10.0, "busy_seconds": seconds, "lost": 0,
        "nodes": [
            node("Retiring", None, 1, 0.5),
            node("Backend_Bound", None, 1, 0.25),
            of_host,
        ],
        "functions": [
            row(json!({"start": "0x1000", "name": "f", "event": "cpu-clock", "samples": 7, "cpu_seconds": seconds * 0.75})),
            row(json!({"start": "0xffffffff81000000", "name": null, "event": "cpu-clock", "samples": 3,
                "cpu_seconds": seconds * 0.25})),
        ],
        "blocks": [row(json!({"function": "0x1000", "start": "0x1010", "end": "0x1020", "samples": 5, "cycles": null}))],
        "counts": [row(json!({"event": "instructions", "value": null, "source": "counted", "missing": "no PMU"}))],
        "notes": [],
    })
}

/// A window of a report with `--estimate`: levels 1 and 2 of the binary, whose build-id it does not know.
pub fn estimated(host: &str, minute: i64, seconds: f64, backend: f64) -> Value {
    let mut all = window(host, minute, "none", seconds);
    let mut first = all["nodes"][0].clone();
    first["source"] = "estimated".into();
    let node = |node: &str, parent: Option<&str>, level: u32, share: f64| {
        let mut row = first.clone();
        row["node"] = node.into();
        row["parent"] = parent.into();
        row["level"] = level.into();
        row["share"] = share.into();
        row["interval"] = json!([share - 0.025, share + 0.025]);
        row
    };
    all["nodes"] = Value::Array(vec![
        node("Retiring", None, 1, 0.625),
        node("Bad_Speculation", None, 1, 0.0625),
        node("Backend_Bound", None, 1, backend),
        node("Memory_Bound", Some("Backend_Bound"), 2, 0.1875),
    ]);
    for rows in ["nodes", "functions", "blocks"] {
        let rows = all[rows].as_array_mut().unwrap();
        rows.iter_mut().for_each(|row| row["binary"]["build_id"] = Value::Null);
    }
    all
}

/// Documents, one per line.
pub fn lines(windows: impl IntoIterator<Item = Value>) -> String {
    windows.into_iter().map(|window| format!("{window}\n")).collect()
}
