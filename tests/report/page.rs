//! The report as a page of HTML: what the document has, nothing that its names bring in, and nothing loaded.

use super::{compiled, report};
use crate::support::files::{Folder, fixture, root, text};
use crate::support::quiet::busy;
use crate::support::run::{Ran, command, ended, program, run, start};
use crate::support::shown;
use report::documents::estimate::{Estimate, Row};
use report::documents::{Report, Source};
use serde_json::{Value, json};

/// Two functions that take about as long; frames are kept.
const PROGRAM: &str = r#"
#include <stdio.h>
__attribute__((noinline)) unsigned first(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++) x = x * 1664525u + 1013904223u;
    return x;
}
__attribute__((noinline)) unsigned second(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++) x = x / 3u + 1013904223u;
    return x;
}
int main(void) {
    unsigned x = 0;
    for (unsigned i = 0; i < 100; i++) x += first(1000000, i) + second(1000000, i);
    printf("%u\n", x);
}
"#;

/// Nothing is loaded, and every script is ours.
fn is_self_contained(page: &str) {
    for loads in
        ["http:", "https:", "//", "src=", "href=\"h", "url(", "@import", "import(", "fetch("]
    {
        let found = page.find(loads).filter(|at| {
            // Comments of the script begin with two slashes and a blank.
            loads != "//" || !page[*at..].starts_with("// ")
        });
        assert_eq!(found.map(|at| &page[at..at + 40]), None, "{loads}");
    }
    assert!(page.contains("default-src 'none'"), "a policy that forbids to load");
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("width=device-width"));
}

/// A finished report with one function of this name, everywhere that a name is.
fn document(folder: &Folder, name: &str) -> String {
    let line = json!({
        "file": name, "line": 1, "text": name, "share": 0.5, "error": 0.1, "samples": 2, "hottest": true,
        "instructions": [{"address": "0x1", "text": name, "share": 0.5, "samples": 2}]
    });
    let frame = json!({
        "name": name, "module": name, "depth": 0, "from": 0.0, "share": 1.0, "samples": 4, "own": 1.0, "parts": []
    });
    let document = json!({
        "tool": name, "uarch": name, "title": name, "source": "no_pmu",
        "subject": [name], "command": [name], "exit": null, "duration": 1.0, "level": 1, "nodes": [{
            "id": name, "label": name, "parent": null, "level": 1, "value": 0.4321, "error": null, "no_error": name,
            "running": null, "over": true, "flagged": true, "bottleneck": true, "mismeasured": false, "split": false,
            "missing": null, "estimate": name, "domain": null, "related": [name], "locate": [],
            "counts": [{"event": name, "value": null, "running": null, "missing": name}],
            "core": name, "scope": name, "interval": null
        }],
        "bottlenecks": [], "info": [{
            "id": name, "label": name, "value": 1.0, "unit": name, "error": null, "running": null, "over": null,
            "missing": null, "core": name, "scope": name, "interval": null
        }],
        "software": {name: 1.0, "x": null}, "software_missing": {"x": name},
        "findings": [{"kind": "nothing", "node": null, "text": name, "meaning": name, "causes": name, "next": name,
            "core": null, "scope": null, "interval": null}],
        "notes": [name], "unread": [{"file": name, "line": 1, "text": name, "why": name}],
        "sampled": {"event": name, "skid": name, "samples": 4, "lost": 0, "notes": [name]},
        "events": [{"name": name, "samples": 4, "nodes": [name], "labels": [name], "functions": [
            {"name": name, "short": name, "module": name, "share": 0.5, "error": 0.1, "samples": 2}]}],
        "functions": [{"name": name, "module": name, "share": 0.1234, "samples": 4, "file": name, "line": 1,
            "gap": name}],
        "blocks": [{"function": name, "module": name, "path": name, "start": "0x1", "end": "0x5", "share": 0.5,
            "samples": 2, "loop_depth": 1, "file": name, "line": 1, "inlined": name}],
        "sources": [{"function": name, "module": name, "start": "0x1", "end": "0x5", "share": 0.5, "samples": 2,
            "missing": [name], "notes": [name], "lines": [line]}],
        "flame_graph": {"title": name, "event": name, "samples": 4, "source": name,
            "nodes": [{"label": name, "share": 1.0}], "frames": [frame], "omitted": 0, "notes": [name]}
    });
    // A document is recognised by its first key.
    let text = document.to_string().replacen('{', "{\"schema\":\"tdtool.report/1\",", 1);
    folder.write("report.json", text)
}

#[test]
fn a_page_escapes_every_name() {
    let folder = Folder::new();
    let name = "operator<<(\"a\" & 'b')</title></script><script>alert(1)</script><img src=x onerror=alert(2)>\u{1b}";
    let (file, page) = (document(&folder, name), folder.file("page.html"));
    report(&[&file, "--html", &page]).succeeded();
    let page = folder.read("page.html");
    let ours = page.matches("<script>").count();
    assert_eq!((ours, page.matches("</script>").count()), (1, 1), "our own script only");
    assert!(!page.contains("<img") && !page.contains('\u{1b}') && !page.contains("operator<<"));
    assert_eq!(page.matches("</title>").count(), 1 + page.matches("<title>").count() - 1);
    let escaped = "operator&lt;&lt;(&quot;a&quot; &amp; &#39;b&#39;)";
    assert!(page.matches(escaped).count() > 40, "{}", page.matches(escaped).count());
    for shown in ["<data value=\"0.1234\">12.3 %</data>", "<data value=\"0.4321\">43.2 %</data>"] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn a_dash_is_standard_output_for_every_file() {
    let folder = Folder::new();
    let file = document(&folder, "f");
    let of = |arguments: &[&str]| run_with(&folder, &[&["report", &file], arguments].concat());
    let page = of(&["--html", "-"]).succeeded();
    assert!(page.stdout.starts_with("<!") && page.stdout.trim_end().ends_with("</html>"));
    assert!(!folder.path().join("-").exists());
    let asked = [
        &["report", &file, "--html", "-", "--format", "json"][..],
        &["report", &file, "--html", "-", "--firefox", "-"],
        &["record", "-o", "-", "--", "true"],
    ];
    let shown = asked.map(|words| shown::outputs(&run_with(&folder, words), &folder));
    assert_shown!("standard_output_taken_twice", shown.join("\n"));
    assert!(!folder.path().join("-").exists());
}

#[test]
fn a_pipe_is_written_to_its_reader_and_not_waited_for_without_one() {
    let folder = Folder::new();
    let (file, pipe) = (document(&folder, "f"), folder.path().join("pipe"));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let refused = run_with(&folder, &["report", &file, "--html", text(&pipe)]);
    assert_eq!(refused.code(), Some(1));
    assert!(refused.stderr.contains(text(&pipe)), "{}", refused.stderr);
    let reader = start(program("cat").arg(&pipe));
    run_with(&folder, &["report", &file, "--html", text(&pipe)]).succeeded();
    assert!(ended(reader).stdout.trim_end().ends_with("</html>"));
}

fn run_with(folder: &Folder, arguments: &[&str]) -> Ran {
    run(command(arguments).current_dir(folder.path()))
}

#[test]
fn a_page_has_every_function_with_its_share() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, PROGRAM, &["-fno-omit-frame-pointer"]) else { return };
    let (page, document) = (folder.file("page.html"), folder.file("report.json"));
    let ran = report(&["--html", &page, "--format", "json", "-o", &document, "--", &program]);
    ran.succeeded();
    let (page, document) = (folder.read("page.html"), folder.read("report.json"));
    let document: Value = serde_json::from_str(&document).expect("a document");
    is_self_contained(&page);
    let functions = document["functions"].as_array().expect("functions");
    if functions.is_empty() {
        eprintln!("skipped: no samples here");
        return;
    }
    for function in functions {
        let (name, share) = (function["name"].as_str().unwrap(), &function["share"]);
        let name = name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let cell = format!("<data value=\"{share}\">");
        let row = page.lines().find(|line| {
            line.starts_with("<tr>")
                && line.contains(&cell)
                && line.contains(&format!("<code>{name}</code>"))
        });
        assert!(row.is_some(), "{name} {share}");
    }
    let counts = document["software"].as_object().expect("software counts");
    for (name, _) in counts.iter().filter(|(_, value)| value.as_f64() != Some(0.0)) {
        let label = match name.as_str() {
            "cpus_used" => "CPUs busy".to_owned(),
            name => name.trim_end_matches("_ms").replace('_', " "),
        };
        assert!(page.contains(&format!("<tr><td>{label}</td>")), "{label}");
    }
    assert!(page.contains("x * 1664525u + 1013904223u"), "the source of the first function");
    assert!(page.contains("<svg class=\"flame\""), "a flame graph");
}

#[test]
fn a_page_of_intervals_has_a_chart_and_the_tree_of_the_whole() {
    let folder = Folder::new();
    let (counts, page) = (fixture("import/zen4-two-intervals.csv"), folder.file("page.html"));
    let shown =
        report(&[text(&counts), "--uarch", "zen4", "--interval", "--html", &page]).succeeded();
    assert!(shown.stdout.is_empty(), "{}", shown.stdout);
    let page = folder.read("page.html");
    is_self_contained(&page);
    // As the text report of both intervals together says, and each of its own.
    let whole = super::json(&[text(&counts), "--uarch", "zen4"]);
    for node in whole["nodes"].as_array().expect("nodes").iter().filter(|n| !n["value"].is_null()) {
        assert!(page.contains(&format!("<data value=\"{}\">", node["value"])), "{node}");
    }
    let numbers = page.split("<summary>the numbers</summary>").nth(1).expect("a table");
    let rows = numbers.split("</table>").next().expect("its rows").matches("<tr><td>").count();
    assert_eq!(rows, 2, "{numbers}");
}

/// A finished report of samples in one loop of one block.
fn one_loop(folder: &Folder) -> String {
    document(folder, "f");
    let mut report: Value = serde_json::from_str(&folder.read("report.json")).expect("a document");
    let row = json!({
        "function": "walk", "function_short": "walk", "module": "sh", "path": "/bin/sh", "head": "0x20",
        "start": "0x10", "end": "0x30", "blocks": 1, "share": 0.75, "samples": 3, "loop_depth": 1, "file": null,
        "line": null, "inlined": null
    });
    (report["loops"], report["blocks"]) = (json!([row]), json!([row]));
    (report["nodes"], report["findings"]) = (json!([]), json!([]));
    report.as_object_mut().expect("an object").remove("schema");
    let text = report.to_string().replacen('{', "{\"schema\":\"tdtool.report/1\",", 1);
    folder.write("loop.json", text)
}

#[test]
fn a_page_concludes_as_the_text_does_and_shows_no_code_twice() {
    let folder = Folder::new();
    let page = folder.file("page.html");
    let evidence = root().join("tests/processors/zen3/divider.evidence.json.gz");
    for file in [&*one_loop(&folder), text(&evidence)] {
        report(&[file, "--html", &page]).succeeded();
        let page = folder.read("page.html");
        let conclusion = &super::json(&[file])["conclusion"];
        let of = |text: &Value| {
            let text = text.as_str().expect("text").replace('&', "&amp;").replace('<', "&lt;");
            text.replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
        };
        let head = page.split("<section id=\"verdict\">").nth(1).expect("a verdict");
        let head = head.split("</section>").next().expect("its end");
        assert!(head.contains(&format!(">{}</p>", of(&conclusion["verdict"]))), "{head}");
        let steps = conclusion["next"].as_array().expect("steps");
        for step in steps {
            let (why, command) = (of(&step["why"]), of(&step["command"]));
            let wanted = format!("{why}: <code class=\"command\">{command}</code>");
            assert!(head.contains(&wanted), "{wanted}: {head}");
        }
        assert_eq!(head.matches("<b>next:</b>").count(), steps.len(), "{head}");
        // A loop of one block is one row.
        let places = page.split("<code>0x").skip(1).filter_map(|row| row.split(' ').next());
        let mut ranges: Vec<&str> = places.filter(|place| place.contains("..0x")).collect();
        let all = ranges.len();
        ranges.sort_unstable();
        ranges.dedup();
        assert!(all > 0 && ranges.len() == all, "{all} rows of {ranges:?}");
    }
}

/// Commands are for the hottest loops and blocks: three at most, and none for what takes little or says the same.
#[test]
fn a_page_has_commands_for_the_hottest_rows_only() {
    let folder = Folder::new();
    let row = |at: u64, share: f64, next: &str| Row {
        name: "walk".to_owned(),
        start: Some(at.into()),
        end: Some((at + 4).into()),
        share,
        sentence: "Undecided.".to_owned(),
        next: next.to_owned(),
        ..Row::default()
    };
    let shares = [0.12, 0.3, 0.05, 0.25, 0.15];
    let loops =
        (0..).zip(shares).map(|(n, share)| row(16 * n, share, &format!("run {n}"))).collect();
    let blocks = vec![row(0x100, 0.2, "run 1"), row(0x110, 0.01, "run 6")];
    let estimate =
        Estimate { loops, blocks, functions: vec![row(0, 0.9, "run 1")], ..Estimate::default() };
    let mut report = Report::new(Source::NoPmu);
    report.estimate = Some(estimate);
    let file = folder.write("report.json", serde_json::to_string(&report).expect("JSON"));
    let page = folder.file("page.html");
    super::report(&[&file, "--html", &page]).succeeded();
    let page = folder.read("page.html");
    let parts = page.split("<section id=\"parts\">").nth(1).expect("the parts");
    let of = |text: &str| -> Vec<String> {
        let commands =
            text.split("<b>next:</b> ").skip(1).filter_map(|rest| rest.split('<').next());
        commands.map(str::to_owned).collect()
    };
    assert_eq!(of(parts.split("</section>").next().expect("its end")), ["run 1", "run 3", "run 4"]);
}

/// Ten intervals like the first of a recording, then ten like its second.
pub(super) fn two_phases(folder: &Folder) -> String {
    let recorded = std::fs::read_to_string(fixture("import/zen4-two-intervals.csv")).expect("read");
    let of = |number: usize| {
        let like = if number <= 10 { "1.000000000," } else { "2.000000000," };
        let lines = recorded.lines().filter_map(move |line| line.trim().strip_prefix(like));
        lines.map(|line| format!("{number}.000000000,{line}\n")).collect::<String>()
    };
    folder.write("phases.csv", (1..=20).map(of).collect::<String>())
}

#[test]
fn a_page_of_intervals_has_their_phases() {
    let folder = Folder::new();
    let (counts, page) = (two_phases(&folder), folder.file("page.html"));
    report(&[&counts, "--uarch", "zen4", "--interval", "--html", &page]).succeeded();
    let page = folder.read("page.html");
    // The shares are those of the two intervals in the text report.
    assert_eq!(page.matches("<summary>Phase ").count(), 2, "{page}");
    for phase in [
        "Phase 1: 0.00 s to 10.00 s, 10 intervals: Backend Bound 80.8 %, Retiring 14.9 %",
        "Phase 2: 10.00 s to 20.00 s, 10 intervals: Retiring 74.5 %, Backend Bound 21.5 %",
    ] {
        assert!(page.contains(phase), "{phase}");
    }
    assert_eq!(page.matches("<title>phase 2 begins</title>").count(), 1);
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_runs() {
    let folder = Folder::new();
    let (nowhere, ran) = (folder.file("none/page.html"), folder.file("ran"));
    let file = document(&folder, "f");
    let asked = [
        &["report", "--html", &nowhere, "--", "touch", &ran][..],
        &["report", &file, "--html", &file],
    ];
    assert_shown!("page_that_cannot_be_written", shown::each(&asked, &folder));
    assert!(!std::path::Path::new(&ran).exists(), "the command ran");
}

#[test]
fn a_page_begins_with_the_verdict_and_hides_what_has_no_value() {
    let folder = Folder::new();
    let file = document(&folder, "f");
    let text = folder.read("report.json");
    // Eighty more nodes of which nothing is known, and a metric.
    let mut whole: Value = serde_json::from_str(&text).expect("a document");
    let mut hidden = whole["nodes"][0].clone();
    hidden["value"] = Value::Null;
    hidden["missing"] = "not measured: no core PMU".into();
    let nodes = whole["nodes"].as_array_mut().expect("nodes");
    for number in 0..80 {
        hidden["label"] = format!("Hidden{number}").into();
        hidden["id"] = hidden["label"].clone();
        nodes.push(hidden.clone());
    }
    let name = "long ns::Engine<std::basic_string<char, std::char_traits<char>, std::allocator<char>>, \
                std::vector<long>>::run(std::vector<long> const&, std::map<long, long> const&)";
    whole["functions"][0]["name"] = name.into();
    whole["functions"][0]["short"] =
        "ns::Engine<std::basic_string<char, std::char_traits<char>>, std::vector<long>>::run"
            .into();
    let first = |text: String| text.replacen('{', "{\"schema\":\"tdtool.report/1\",", 1);
    whole.as_object_mut().expect("an object").remove("schema");
    folder.write("report.json", first(whole.to_string()));
    let page = folder.file("page.html");
    report(&[&file, "--html", &page]).succeeded();
    let page = folder.read("page.html");
    assert_eq!(page.matches("not measured: no core PMU").count(), 2, "a line, and which: {page}");
    assert!(page.contains("80 without a value"), "{page}");
    let sections: Vec<&str> = page.split("<section id=\"").skip(1).collect();
    let ids: Vec<&str> = sections.iter().filter_map(|one| one.split('"').next()).collect();
    assert_eq!(ids[..3], ["verdict", "tree", "flame"], "{ids:?}");
    // The name in the text's length, the whole of it where a pointer rests.
    let row = page.lines().find(|line| line.contains("ns::Engine")).expect("its row");
    let shown = row.split("<code").nth(1).and_then(|code| code.split('>').nth(1)).expect("code");
    let shown =
        shown.split("</code").next().expect("a name").replace("&lt;", "<").replace("&gt;", ">");
    assert!(shown.chars().count() <= 60, "{row}");
    assert!(row.contains("title=\"long ns::Engine"), "{row}");
}
