//! The source view: lines of a function with their share, and the assembly of each.

use super::{compiled, json, report};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use serde_json::Value;

/// Line 6 has the loop's work, line 9 a tenth of it.
const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) unsigned work(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < 100; k++)
            x = (x ^ k) * 1664525u % 977u;
    unsigned y = x;
    for (unsigned i = 0; i < 10 * n; i++)
        y = (y ^ i) * 1664525u % 977u;
    return y;
}
int main(int argc, char **argv) {
    unsigned x = 0;
    for (int i = 0; i < atoi(argv[1]); i++) x += work(10000, i);
    printf("%u\n", x);
}
"#;

fn rows(document: &Value) -> Vec<(u64, f64, bool, String)> {
    let lines = document["annotated"]["lines"].as_array().expect("lines");
    let row = |line: &Value| {
        let text = line["text"].as_str().unwrap_or_default().trim().to_owned();
        let share = line["share"].as_f64().expect("a share");
        (line["line"].as_u64().unwrap_or(0), share, line["hottest"] == true, text)
    };
    lines.iter().map(row).collect()
}

/// A recording of it; `None`, with a message, where that cannot be.
fn recorded(folder: &Folder, flags: &[&str]) -> Option<(String, String)> {
    let program = compiled(folder, PROGRAM, flags)?;
    let session = folder.file("run.tds");
    let recorded = tdtool(["record", "-o", &session, "--", &program, "60"]);
    if recorded.stderr.contains("cannot sample") {
        eprintln!("skipped: {}", recorded.stderr);
        return None;
    }
    recorded.succeeded();
    Some((program, session))
}

#[test]
fn the_line_that_does_ten_times_the_work_is_the_hottest() {
    let _busy = busy();
    let folder = Folder::new();
    let Some((_, session)) = recorded(&folder, &[]) else { return };
    let document = json(&[&session, "--annotate", "work"]);
    let rows = rows(&document);
    let line = |number: u64| rows.iter().find(|r| r.0 == number).expect("the line").clone();
    let (heavy, light) = (line(6), line(9));
    assert!(heavy.2 && heavy.3 == "x = (x ^ k) * 1664525u % 977u;", "{heavy:?}");
    assert_eq!(rows.iter().filter(|r| r.2).count(), 1);
    // 10 : 1 by construction; skid moves samples to the lines of the loops (5, 8).
    let (heavy, light) = (heavy.1 + line(5).1, light.1 + line(8).1);
    assert!(heavy > 0.8 && light > 0.02 && light < 0.2, "{heavy} and {light}: {rows:?}");
    let sum: f64 = rows.iter().map(|r| r.1).sum();
    assert!((sum - 1.0).abs() < 1e-6, "all samples are in some line: {sum}");
    for line in document["annotated"]["lines"].as_array().expect("lines") {
        let of = |key: &str| line[key].as_f64().expect("a number");
        let own = line["instructions"].as_array().expect("instructions");
        let sum: f64 = own.iter().map(|i| i["share"].as_f64().expect("a share")).sum();
        assert!((sum - of("share")).abs() < 1e-9, "{line}");
        assert!(!own.is_empty() && of("error") > 0.0, "{line}");
    }
    let text = report(&[&session, "--annotate", "work"]).stdout;
    let shown = text.split("Source of work").nth(1).expect("the source");
    let hottest = shown.lines().find(|l| l.starts_with('●')).expect("a hottest line");
    assert!(hottest.contains("6             x = (x ^ k)") && hottest.contains('█'), "{shown}");
    assert!(shown.lines().any(|l| l.contains(" %  0x")), "assembly below: {shown}");
}

#[test]
fn a_live_command_is_annotated_too() {
    let _busy = busy();
    let folder = Folder::new();
    let Some((program, _)) = recorded(&folder, &[]) else { return };
    let document = json(&["--annotate", "work", "--", &program, "60"]);
    assert!(rows(&document).iter().any(|r| r.2 && r.0 == 6), "{document:#}");
}

#[test]
fn without_sources_there_is_assembly_and_the_reason() {
    let _busy = busy();
    let folder = Folder::new();
    let Some((_, session)) = recorded(&folder, &[]) else { return };
    std::fs::rename(folder.path().join("source.c"), folder.path().join("gone.c")).expect("moved");
    let document = json(&[&session, "--annotate", "work"]);
    let missing = document["annotated"]["missing"].to_string();
    assert!(missing.contains("source.c"), "{missing}");
    assert!(rows(&document).iter().all(|r| r.3.is_empty() && r.0 > 0), "numbers without text");
    // Elsewhere, by its name alone.
    folder.write("elsewhere/source.c", PROGRAM);
    let root = folder.file("elsewhere");
    let document = json(&[&session, "--annotate", "work", "--symfs", &root]);
    assert!(rows(&document).iter().any(|r| r.3.starts_with("x = (x ^ k)")), "{document:#}");

    let Some((_, session)) = recorded(&folder, &["-g0"]) else { return };
    let document = json(&[&session, "--annotate", "work"]);
    assert!(document["annotated"]["missing"].to_string().contains("-g"), "{document:#}");
    let lines = document["annotated"]["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 1);
    assert!(lines[0]["instructions"].as_array().is_some_and(|all| all.len() > 10));
    let refused = report(&[&session, "--annotate", "worf"]);
    assert!(refused.stderr.contains("`work`"), "{}", refused.stderr);
}
