//! Changes that fail a build: `tdtool diff --fail-if` and `tdtool bench`.

use crate::support::child::Limited as _;
use crate::support::files::Folder;
use crate::support::run::{Ran, ended, start, tdtool};
use crate::support::shown;
use crate::support::tools::available;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A report as `report --format json` writes it, of one run with these milliseconds and this share.
fn report(folder: &Folder, name: &str, wall_ms: f64, backend: f64) -> String {
    let node = json!({
        "id": "Backend_Bound", "label": "Backend Bound", "parent": null, "level": 1, "value": backend,
        "error": null, "no_error": null, "running": null, "over": null, "flagged": false, "bottleneck": false,
        "mismeasured": false, "split": false, "missing": null, "estimate": null, "domain": null, "related": [],
        "locate": [], "counts": [], "core": null, "scope": null, "interval": null
    });
    let document = json!({
        "schema": "tdtool.report/1", "tool": "0", "uarch": "icl", "title": "", "source": "pmu", "subject": [],
        "command": null, "exit": null, "duration": wall_ms / 1e3, "level": 1, "nodes": [node], "bottlenecks": [],
        "info": [], "software": {"wall_ms": wall_ms}, "findings": [], "notes": [], "unread": []
    });
    folder.write(name, document.to_string())
}

/// Three runs of 100, 102, 104 ms with 30, 31, 32 %, and three 10 ms and 10 points above them.
fn sides(folder: &Folder) -> (Vec<String>, Vec<String>) {
    let runs = |name: &str, more: f64| -> Vec<String> {
        let run = |i: u32| {
            let (i, wall) = (f64::from(i), 100.0 + more);
            report(
                folder,
                &format!("{name}{i}.json"),
                wall + 2.0 * i,
                0.30 + more / 100.0 + 0.01 * i,
            )
        };
        (0..3).map(run).collect()
    };
    (runs("a", 0.0), runs("b", 10.0))
}

fn gated(a: &[String], b: &[String], options: &[&str]) -> Ran {
    let strings = |all: &[String]| all.to_vec();
    let options = options.iter().map(|o| (*o).to_owned()).collect();
    tdtool(
        [vec!["diff".to_owned()], strings(a), vec!["--to".to_owned()], strings(b), options]
            .concat(),
    )
}

/// By hand: means 102 and 112 ms, s = 2, t = 4.303: each ± 4.97, together ± 7.03; 10 ms are 9.8 % of 102.
#[test]
fn a_change_beyond_its_error_and_the_line_is_status_4() {
    let folder = Folder::new();
    let (a, b) = sides(&folder);
    let status = |condition: &str| gated(&a, &b, &["--fail-if", condition]).code();
    assert_eq!(status("time > +5%"), Some(4));
    assert_eq!(status("wall_ms > 9"), Some(4));
    assert_eq!(status("time > +15%, Backend_Bound < -3"), Some(0));
    assert_eq!(status("time > +15%, Backend_Bound > +3"), Some(4));
    assert_eq!(status("Backend Bound < 3"), Some(0));
    let ran = gated(&a, &b, &["--fail-if", "time > +5%, Backend_Bound > 3"]);
    assert_eq!(ran.code(), Some(4));
    assert_shown!("gate_crossed", shown::outputs(&ran, &folder));
}

/// On whichever side of a line it is, one run establishes nothing: never 0, which would pass, nor 4.
#[test]
fn single_runs_are_status_3_on_both_sides_of_a_line_and_say_how_to_judge() {
    let folder = Folder::new();
    let (a, b) = sides(&folder);
    let with = |condition: &str, more: &[&str]| {
        let asked = ["diff", &a[0], &b[0], "--fail-if", condition];
        tdtool(asked.iter().chain(more))
    };
    for condition in ["time > +5%", "time > +50%", "time < -5%", "Backend_Bound > 3"] {
        for format in ["text", "json", "csv", "markdown", "junit"] {
            let single = with(condition, &["--format", format]);
            assert_eq!(single.code(), Some(3), "{condition} {format}: {}", single.stderr);
        }
    }
    assert_shown!("gate_of_single_runs", shown::outputs(&with("time > +5%", &[]), &folder));
    // One run against several is no better.
    let mixed = gated(&a, &b[..1], &["--fail-if", "time > +5%"]);
    assert_eq!(mixed.code(), Some(3), "{}", mixed.stderr);
    let asked = [
        &["diff", &a[0], &b[0], "--fail-if", "tiem > +5%"][..],
        &["diff", &a[0], &a[1], &a[2]],
        &["diff", &a[0]],
        &["bench", "true"],
    ];
    assert_shown!("diff_refused", shown::each(&asked, &folder));
}

/// By hand, as above: 9.8 ± 6.9 % reaches across 12 %. Of 0 in A there is no per cent.
#[test]
fn what_is_not_known_is_said_beside_what_is_crossed_or_held() {
    let folder = Folder::new();
    let (a, b) = sides(&folder);
    let more = gated(&a, &b, &["--fail-if", "time > +12%"]);
    assert_eq!(more.code(), Some(0), "{}", more.stderr);
    let zero = |name: &str| {
        let runs = [0, 1].map(|i| report(&folder, &format!("{name}{i}"), 0.0, 0.3));
        runs.to_vec()
    };
    let conditions = ["--fail-if", "time > +5%, Backend_Bound > +3"];
    let both = gated(&zero("none"), &b, &conditions);
    assert_eq!(both.code(), Some(4), "{}", both.stderr);
    let shown = [more, both].map(|ran| shown::outputs(&ran, &folder));
    assert_shown!("gate_not_decided", shown.join("\n"));
}

#[test]
fn other_tools_read_it() {
    let folder = Folder::new();
    let (a, b) = sides(&folder);
    let condition = ["--fail-if", "time > +5%, wall_ms > 90, Backend_Bound > 3"];
    let form =
        |format: &str| gated(&a, &b, &[&condition[..], &["--format", format]].concat()).stdout;
    let junit = form("junit");
    assert!(junit.contains(r#"tests="3" failures="2" errors="0""#), "{junit}");
    if available("python3") {
        let path = folder.write("junit.xml", &junit);
        let script = "import sys, xml.etree.ElementTree as e\nr = e.parse(sys.argv[1]).getroot()\n\
                      print([t.get('name') for t in r if t.find('failure') is not None])";
        let read = std::process::Command::new("python3")
            .args(["-c", script, &path])
            .run_limited()
            .unwrap();
        let read = String::from_utf8_lossy(&read.stdout).into_owned();
        assert_eq!(read.trim(), "['time > +5%', 'Backend_Bound > +3']");
    }
    assert_shown!("gate_markdown", shown::without_paths(&form("markdown"), &folder));
    let document: Value = serde_json::from_str(&form("json")).unwrap();
    assert_eq!(document["gates"][0]["crossing"], "crossed");
    assert_eq!(document["gates"][1]["crossing"], "held");
}

/// An interpreter touches more pages than a shell, however busy the machine is.
#[test]
fn commands_that_run_alternately_are_compared() {
    if !available("python3") {
        return;
    }
    let bench = |condition: &str| {
        tdtool([
            "bench",
            "-n",
            "3",
            "--fail-if",
            condition,
            "sh",
            "-c",
            "echo shown",
            "--",
            "python3",
            "-c",
            "",
        ])
    };
    let crossed = bench("page_faults > +100%");
    assert_eq!(crossed.code(), Some(4), "{}", crossed.stderr);
    assert!(!crossed.stdout.contains("shown\n"), "{}", crossed.stdout);
    assert_eq!(bench("page_faults < -10%").code(), Some(0));
    let failed = tdtool(["bench", "-n", "2", "true", "--", "false"]);
    assert_eq!(failed.code(), Some(1), "{}", failed.stderr);
}

/// The workflow in docs/reference/commands.md: a parser of YAML reads it, and a shell runs its commands.
#[test]
fn the_documented_workflow_is_valid_and_its_commands_run() {
    const COMMANDS: &str = include_str!("../../docs/reference/commands.md");
    const READ: &str =
        "import json, sys, yaml; print(json.dumps(yaml.load(sys.stdin, yaml.BaseLoader)))";
    let example = COMMANDS.split("In GitHub Actions").nth(1).expect("an example");
    let lines = example.lines().skip_while(|line| !line.starts_with("    "));
    let yaml: String = lines
        .take_while(|line| line.starts_with("    "))
        .map(|line| format!("{}\n", &line[4..]))
        .collect();
    let folder = Folder::new();
    let input = std::fs::File::open(folder.write("workflow.yml", &yaml)).expect("a file");
    let read = ended(start(Command::new("python3").args(["-c", READ]).stdin(input)));
    if read.stderr.contains("No module named") {
        return eprintln!("skipped: python3 has no yaml");
    }
    let workflow: Value = serde_json::from_str(&read.stdout).expect(&yaml);
    assert_eq!(workflow["on"], "pull_request");
    let steps = workflow["jobs"]["performance"]["steps"].as_array().expect("steps");
    assert!(steps.iter().all(|step| step["uses"].is_string() != step["run"].is_string()));
    for side in ["base", "head"] {
        std::fs::create_dir(folder.path().join(side)).expect("a folder");
        folder.write(&format!("{side}/Makefile"), "prog:\n\tcp /bin/true prog\n");
    }
    let tdtool = Path::new(env!("CARGO_BIN_EXE_tdtool")).parent().expect("a folder");
    let path = format!("{}:{}", tdtool.display(), std::env::var("PATH").expect("a path"));
    let summary = folder.file("summary");
    for step in steps.iter().filter_map(|step| step["run"].as_str()) {
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", step]).current_dir(folder.path()).env("PATH", &path);
        let ran = shell.env("GITHUB_STEP_SUMMARY", &summary).run_limited().expect("sh");
        // The same program on both sides: a busy machine may make one slower.
        let is_gate = step.contains("--fail-if") && ran.status.code() == Some(4);
        assert!(ran.status.success() || is_gate, "{step}: {ran:?}");
    }
    let summary = folder.read("summary");
    assert!(summary.contains("| wall_ms |") || summary.contains("wall"), "{summary}");
    assert!(
        summary.lines().any(|line| line.starts_with("|--") || line.starts_with("| --")),
        "{summary}"
    );
}
