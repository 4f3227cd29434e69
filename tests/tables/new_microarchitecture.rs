//! A new microarchitecture is one file of events and facts, and one of latencies: every command
//! knows it, and its facts are in the results.

use crate::block::sandbox;
use crate::collect::intel;
use crate::support::files::{Folder, root, text};
use crate::support::run::{Ran, command, run, tdtool};
use crate::support::shown;
use pmu::machine::choose;
use serde_json::Value;

/// A folder with the tables of a microarchitecture called `nova`: those of Zen 3, of other
/// processors and with facts of its own.
fn nova() -> Folder {
    let read = |name: &str| std::fs::read_to_string(root().join("events").join(name)).unwrap();
    let with = |mut text: String, changes: &[(&str, &str)]| {
        for (old, new) in changes {
            assert!(text.contains(old), "{old}");
            text = text.replacen(old, new, 1);
        }
        text
    };
    let zen3 = read("amd/zen3.toml");
    let line = |key: &str| zen3.lines().find(|l| l.starts_with(key)).unwrap().to_owned();
    let table = with(
        zen3.clone(),
        &[
            ("name = \"zen3\"", "name = \"nova\""),
            (&line("title"), "title = \"Nova (test processors)\""),
            (&line("match"), "match = [{ family = 99, models = [1] }]"),
            (
                &line("pipeline"),
                "pipeline = { width = 5, reorder_buffer = 777, source = \"the Nova manual\" }",
            ),
            (&line("latencies"), "latencies = \"nova\""),
            (&line("op_cache"), "op_cache = { ops = 12, source = \"the Nova manual\" }"),
        ],
    );
    // Of several rows for an instruction the last one holds.
    let imul = "\n[[latency]]\nclass = \"gpr\"\nregister = 11\nmnemonics = [\"imul\"]\n\
                source = \"manual\"\n";
    let sources = ("[sources]", "[sources]\nmanual = \"the Nova manual\"");
    let latencies = with(read("latency/zen3.toml"), &[sources]) + imul;
    let folder = Folder::new();
    folder.write("nova.toml", table);
    folder.write("latency/nova.toml", latencies);
    folder
}

/// A command on Nova.
fn on_nova(folder: &Folder, arguments: &[&str]) -> Ran {
    let forced = ["--uarch", "nova", "--tables", text(folder.path())];
    // Facts that were measured here and kept would outweigh the table's.
    run(command([arguments, &forced].concat()).env("XDG_CACHE_HOME", folder.path()))
}

fn has(all: &Value, part: &str) -> bool {
    all.as_array().unwrap().iter().any(|one| one.to_string().contains(part))
}

#[test]
fn its_processors_find_it() {
    let folder = nova();
    let library = events::library().with_folder(folder.path()).unwrap();
    let info = "vendor_id : AuthenticAMD\ncpu family : 99\nmodel : 1\nstepping : 0\n";
    let machine = intel(&[("proc/cpuinfo", info)]);
    let chosen = choose(&machine, &library, None).unwrap();
    assert_eq!(chosen.iter().map(|t| t.table.as_str()).collect::<Vec<_>>(), ["nova"]);
    let core = machine.core(&library, None).unwrap();
    assert_eq!((core.uarch(), core.width(), core.warning()), (Some("nova"), Some(5), None));
}

#[test]
fn its_table_is_listed_checked_shown_and_planned() {
    let folder = nova();
    let dir = text(folder.path());
    let asked = [
        &["tables", "check", "nova", "--tables", dir][..],
        &["tables", "plan", "nova", "--level", "1", "--tables", dir],
    ];
    assert_shown!("tables_of_a_new_microarchitecture", shown::each(&asked, &folder));
    let facts = tdtool(["tables", "show", "nova", "--tables", dir]).succeeded().stdout;
    assert!(facts.contains("777"), "{facts}");
    let listed = tdtool(["tables", "list", "--tables", dir]).succeeded().stdout;
    assert!(listed.contains("Nova (test processors)"), "{listed}");
}

#[test]
fn dependencies_use_its_reorder_buffer_and_latencies() {
    let folder = nova();
    // imul rax,rbx
    let deps = on_nova(&folder, &["deps", "480fafc3", "--format", "json"]).succeeded().json();
    assert_eq!((&deps["uarch"], &deps["window"]), (&"nova".into(), &777.into()));
    assert_eq!(deps["window_source"], "the Nova manual");
    assert_eq!(deps["recurrences"][0]["cycles"], 11.0);
    assert_eq!(deps["recurrences"][0]["path"][0]["source"], "the Nova manual");
    let warning = "table nova (Nova (test processors)) does not describe this processor";
    assert!(has(&deps["notes"], warning), "{deps}");
    assert!(!has(&deps["notes"], "does not state"), "{deps}");
}

#[test]
fn blocks_and_microbenchmarks_name_it_and_use_its_facts() {
    let Some(_sandbox) = sandbox() else { return };
    let folder = nova();
    let block = ["block", "480fafc3 4801d8", "--quick", "--budget", "50", "--format", "json"];
    let block = on_nova(&folder, &block).json();
    assert_eq!(block["machine"]["table"], "nova");
    assert!(has(&block["notes"], "table nova (Nova (test processors)) does not describe"));
    assert!(!has(&block["notes"], "does not state"), "{block}");
    // A wider core than the table's is believed.
    let widths = ["one slot of 5 per cycle (table nova)", "per cycle (the self-test)"];
    // Beside something else it may end without bounds.
    let has_bounds = widths.iter().any(|width| has(&block["bounds"], width));
    assert!(has_bounds || block["status"] != "ok", "{block}");
    let forms = ["microbench", "IMUL_GPR64i64_GPR64i64", "--measures", "4", "--format", "json"];
    let bench = on_nova(&folder, &forms).json();
    assert_eq!(bench["uarch"], "nova");
    assert!(has(&bench["notes"], "does not describe this processor"), "{bench}");
    assert!(has(&bench["assumptions"], "the op cache holds 12 (the Nova manual)"));
    assert!(has(&bench["bounded_by"]["sources"], "the Nova manual"), "{bench}");
}

#[test]
fn reports_of_a_measurement_and_the_doctor_name_it() {
    let folder = nova();
    let report = ["report", "--no-code", "--format", "json"];
    let forced = ["--uarch", "nova", "--tables", text(folder.path()), "--", "true"];
    let report = tdtool([&report[..], &forced].concat()).succeeded().json();
    assert_eq!(report["uarch"], "nova");
    assert!(has(&report["notes"], "table nova (Nova (test processors)) does not describe"));
    let session = folder.file("session");
    let record = ["record", "-o", &session, "--no-samples"];
    tdtool([&record[..], &forced].concat()).succeeded();
    let recorded = tdtool(["report", &session, "--format", "json"]).succeeded().json();
    assert_eq!(recorded["uarch"], "nova");
    assert!(has(&recorded["notes"], "does not describe this processor"), "{recorded}");
    let doctor = on_nova(&folder, &["doctor", "--format", "json"]).succeeded().json();
    assert_eq!(doctor["tables"][0]["name"], "nova");
    assert!(has(&doctor["findings"], "table nova (Nova (test processors)) does not describe"));
}
