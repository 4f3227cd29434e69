//! `tdtool branches`: figures of recordings with known truth (../shared/notes/recordings.md).

use crate::profile::made;
use crate::support::files::{Folder, shared, text};
use crate::support::run::tdtool;
use serde_json::Value;

fn read(arguments: &[&str]) -> Value {
    let mut all = vec!["branches"];
    all.extend(arguments);
    all.extend(["--format", "json"]);
    let done = tdtool(&all);
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.stderr))
}

fn row<'a>(document: &'a Value, list: &str, key: &str, value: &str) -> &'a Value {
    let all = document[list].as_array().expect("a list");
    all.iter().find(|row| row[key] == value).unwrap_or_else(|| panic!("no {list} at {value}"))
}

/// Figures of notes/recordings.md: counted with `perf script` and by other tools.
#[test]
fn a_real_recording_of_a_skylake() {
    let Some(folder) = shared("recordings/autofdo") else { return };
    let program = folder.join("propeller_sample_1.bin");
    let recording = folder.join("propeller_sample_1.perfdata1");
    let document = read(&[text(&recording), "--binary", text(&program)]);
    assert_eq!(document["events"][0]["entries"], 119_424);
    let edges = document["edges"].as_array().unwrap();
    let inside = |edge: &&Value| edge["module"].as_str().unwrap().ends_with("sample_1.bin.gen");
    let count = |edge: &Value| edge["count"].as_u64().unwrap();
    let of_program: u64 = edges.iter().filter(inside).map(count).sum();
    let repeated = document["events"][0]["skipped"]["duplicated"].as_u64().unwrap();
    assert_eq!(repeated, 733, "newest entries with no way from target to source, by perf script");
    assert_eq!(of_program + repeated, 119_419);
    let most = &document["events"][0]["modules"][0];
    assert!(most["module"].as_str().unwrap().ends_with("sample_1.bin.gen"), "{most}");
    assert_eq!(most["entries"], 119_419);
    let one = row(&document, "loops", "back", "0x1a6e");
    assert_eq!(one["head"], "0x1957");
    assert_eq!(one["taken"], 15_550);
    assert_eq!(one["iterations"]["count"], 11_818);
    assert!((one["iterations"]["mean"].as_f64().unwrap() - 30.32).abs() < 0.01);
    assert_eq!(one["iterations"]["median"], 24.0);
    let block = document["blocks"].as_array().unwrap().iter().find(|b| b["timed"] != 0).unwrap();
    let timed = block["histogram"].as_array().unwrap().iter().map(|pair| pair[1].as_u64().unwrap());
    assert_eq!(Some(timed.sum()), block["timed"].as_u64());
}

/// 62 entries in two events; 95 / 62 cycles for the block in both together.
#[test]
fn a_block_of_a_recording_that_an_older_perf_refuses() {
    let Some(folder) = shared("recordings/gematria") else { return };
    let recording = folder.join("simple_x86_elf_object.perf.data");
    let document = read(&[text(&recording), "--symfs", text(&folder)]);
    let own = document["blocks"].as_array().unwrap().iter().filter(|b| b["start"] == "0x16cb");
    let (mut timed, mut cycles) = (0, 0.0);
    for block in own {
        timed += block["timed"].as_u64().unwrap();
        cycles += block["timed"].as_f64().unwrap() * block["cycles_mean"].as_f64().unwrap();
    }
    assert_eq!(timed, 62);
    assert!((cycles - 95.0).abs() < 1e-6, "{cycles}");
}

/// The truth of the run that the recording was made from (simlbr/README.md).
#[test]
fn iterations_and_trips_of_a_run_that_is_known() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("levels.perf.data");
    let roots = folder.parent().unwrap();
    let document = read(&[text(&recording), "--symfs", text(roots)]);
    let levels = row(&document, "loops", "head", "0x401b48");
    assert_eq!(levels["iterations"]["modes"], serde_json::json!([80, 230, 650]));
    let inner = row(&document, "loops", "head", "0x401cd1");
    assert_eq!(inner["iterations"]["modes"], serde_json::json!([190, 360, 610]));
    let trips = &inner["trips"]["histogram"];
    assert_eq!(trips.as_array().unwrap().len(), 1);
    assert_eq!(trips[0][0], 4, "each whole execution has 4 trips");
    let coin = row(&document, "edges", "from", "0x401dc6");
    let share = coin["mispredicted"].as_f64().unwrap() / coin["count"].as_f64().unwrap();
    assert!((share - 0.5).abs() < 0.1, "half of the taken ones: {share}");
}

/// The trips of the run itself: a bound holds, a mean of ten ends or more is within a third, and `prefetch` says the same.
#[test]
fn trips_are_those_of_the_run_in_all_documents() {
    let Some(folder) = shared("simlbr") else { return };
    let roots = folder.parent().unwrap();
    for name in ["levels", "counts"] {
        let recording = folder.join(format!("{name}.perf.data"));
        let truth = std::fs::read_to_string(folder.join(format!("{name}.truth.json"))).unwrap();
        let truth: Value = serde_json::from_str(&truth).unwrap();
        let document = read(&[text(&recording), "--symfs", text(roots)]);
        let mut compared = 0;
        for one in document["loops"].as_array().unwrap() {
            let known =
                truth["loops"].as_array().unwrap().iter().find(|l| l["head"] == one["head"]);
            let Some(known) = known.filter(|known| known["simple"] == true) else { continue };
            let number = |key: &str| known[key].as_f64().unwrap();
            let mean = number("iterations") / number("entries");
            let trips = &one["trips"];
            let close = trips["about"].as_f64().is_none_or(|n| (n / mean - 1.0).abs() < 1.0 / 3.0);
            let bound = trips["mean_at_least"].as_f64().is_none_or(|least| least <= mean);
            let always = trips["always"].as_f64().is_none_or(|n| n == mean);
            assert!(close && bound && always, "{name}: {one}, not {mean}");
            compared += 1;
        }
        assert!(compared >= 8, "{name}: {compared}");
        let trips = &row(&document, "loops", "head", "0x401a10")["trips"];
        assert!(trips["mean_at_least"].as_f64().unwrap() > 600.0, "{trips}: of 4096");
        let ran =
            tdtool(["prefetch", text(&recording), "--symfs", text(roots), "--format", "json"]);
        for advice in ran.json()["advice"].as_array().unwrap() {
            let own = &advice["loop"];
            let Some(head) = own["head"].as_str().filter(|_| !own["event"].is_null()) else {
                continue;
            };
            let trips = &row(&document, "loops", "head", head)["trips"];
            let keys =
                [("trips", "always"), ("trips_mean", "about"), ("trips_at_least", "mean_at_least")];
            assert!(keys.iter().all(|(a, b)| own[a] == trips[b]), "{head}: {own} but {trips}");
        }
    }
}

/// A note names what would help, not what was given; and that another program was given.
#[test]
fn code_that_is_not_found_has_the_reason() {
    let Some(folder) = shared("simlbr") else { return };
    let (place, recording) = (Folder::new(), folder.join("levels.perf.data"));
    let note = |arguments: &[&str]| {
        let document = read(&[&[text(&recording)], arguments].concat());
        let all = document["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
        all.into_iter().find(|note| note.contains("/simlbr/kernels")).unwrap().to_owned()
    };
    assert!(note(&[]).contains("--binary") && note(&[]).contains("--symfs"));
    let root = text(place.path());
    let given = note(&["--symfs", root]);
    assert!(given.contains(root) && given.contains("--binary"), "{given}");
    assert!(!given.contains("--symfs"), "{given}");
    let other = folder.join("kernels-pie");
    let wrong = note(&["--binary", text(&other)]);
    assert!(wrong.contains("kernels-pie") && wrong.contains("build-id"), "{wrong}");
}

/// Another build of the program is where it was recorded: all three commands name it, with both build-ids (`readelf -n`),
/// and what they leave out; none reads its lines.
#[test]
fn another_build_of_a_program_is_named_with_what_is_left_out() {
    let Some(folder) = shared("simlbr") else { return };
    let (place, recording) = (Folder::new(), folder.join("levels.perf.data"));
    let there = place.path().join("simlbr");
    std::fs::create_dir(&there).unwrap();
    std::fs::copy(folder.join("kernels-pie"), there.join("kernels")).unwrap();
    let ids = "build-id ecd9106b0ac5… recorded, 191494c99692… found";
    for (command, left_out) in
        [("branches", "(70784 branches)"), ("loads", "(4585 samples)"), ("prefetch", "(14 loads)")]
    {
        let done = tdtool([command, text(&recording), "--symfs", text(place.path())]).succeeded();
        let is_of_it = |line: &&str| line.starts_with("note:") && line.contains(left_out);
        let note = done.stdout.lines().find(is_of_it);
        let note = note.unwrap_or_else(|| panic!("{command}: {}", done.stdout));
        assert!(note.contains("/simlbr/kernels"), "{command}: {note}");
        assert!(note.contains(ids) && note.contains("--binary"), "{command}: {note}");
        assert!(!done.stdout.contains("kernels.c"), "{command}: {}", done.stdout);
    }
}

/// Without the program its addresses are offsets in the file: no profile of another tool has them, and the documents say
/// what they are. `readelf -lW kernels`: the code is at offset 0x1000, address 0x401000.
#[test]
fn offsets_of_a_missing_file_are_never_given_as_addresses() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("counts.perf.data");
    for format in ["profgen", "bolt", "autofdo"] {
        let done = tdtool(["branches", text(&recording), "--format", format]);
        assert_eq!((done.code(), done.stdout.as_str()), (Some(1), ""), "{format}");
        assert!(done.stderr.contains("/simlbr/kernels"), "{}", done.stderr);
    }
    let module = |more: &[&str]| {
        let document = read(&[&[text(&recording)], more].concat());
        let offsets = document["modules"][0]["file_offsets"].as_bool().unwrap();
        (offsets, document["edges"][0]["to"].as_str().unwrap().to_owned())
    };
    assert_eq!(module(&[]), (true, "0x19a0".to_owned()));
    let roots = text(folder.parent().unwrap());
    assert_eq!(module(&["--symfs", roots]), (false, "0x4019a0".to_owned()));
}

/// A profile for another tool is of one event, and that of each event has the counts of this event alone.
#[test]
fn profiles_for_other_tools_hold_one_event() {
    let Some(folder) = shared("simlbr") else { return };
    let files = ["counts", "levels"].map(|name| folder.join(format!("{name}.perf.data")));
    let roots = text(folder.parent().unwrap()).to_owned();
    let both = ["branches", text(&files[0]), text(&files[1]), "--symfs", &roots];
    for format in ["profgen", "bolt", "autofdo"] {
        let all = tdtool([&both[..], &["--format", format]].concat());
        assert_eq!((all.code(), all.stdout.as_str()), (Some(1), ""), "{format}");
        assert!(all.stderr.contains("--event-number"), "{}", all.stderr);
        for (file, event) in files.iter().zip(["0", "2"]) {
            let one = tdtool([&both[..], &["--format", format, "--event-number", event]].concat());
            let own = ["branches", text(file), "--symfs", &roots, "--format", format];
            assert_eq!(one.succeeded().stdout, tdtool(own).succeeded().stdout, "{format} {event}");
        }
    }
}

/// The recording has branches: what is missing is the event that was asked for.
#[test]
fn an_event_without_branches_is_named_with_those_that_have_some() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("counts.perf.data");
    for (number, why) in [("9", "has no event 9"), ("1", "event 1 of")] {
        let done = tdtool(["branches", text(&recording), "--event-number", number]);
        assert_eq!(done.code(), Some(1));
        assert!(done.stderr.contains(why), "{}", done.stderr);
        let with = "events with branch stacks: 0 br_inst_retired.near_taken:u";
        assert!(done.stderr.contains(with), "{}", done.stderr);
    }
}

/// 17 of its branches come from outside the program, of which only their targets are: its code is not missing.
#[test]
fn a_program_that_was_given_is_not_missing() {
    let Some(folder) = shared("recordings/llvm-profgen") else { return };
    let at = |name: &str| folder.join(name);
    let (script, program) = (at("inline-noprobe2.perfscript"), at("inline-noprobe2.perfbin"));
    let document = read(&[text(&script), "--binary", text(&program)]);
    assert_eq!(document["notes"], serde_json::json!([]));
    let edges = document["edges"].as_array().unwrap();
    assert!(edges.iter().any(|edge| edge["from"].is_null()), "{edges:?}");
}

/// CSV has the rows of JSON, and of loops what they are read for.
#[test]
fn the_rows_of_csv_are_those_of_the_document() {
    let Some(folder) = shared("simlbr") else { return };
    let (recording, roots) = (folder.join("counts.perf.data"), folder.parent().unwrap());
    let document = read(&[text(&recording), "--symfs", text(roots)]);
    let all = ["branches", text(&recording), "--symfs", text(roots), "--format", "csv"];
    let done = tdtool(all).succeeded();
    let rows: Vec<Vec<&str>> = done.stdout.lines().map(|line| line.split(',').collect()).collect();
    let number = |what: &str| rows.iter().filter(|row| row[0] == what).count();
    let lists = ["events", "edges", "ranges", "blocks", "instructions", "loops", "calls"];
    for list in lists {
        let what = list.trim_end_matches('s');
        assert_eq!(number(what), document[list].as_array().unwrap().len(), "{list}");
    }
    assert_eq!(number("skipped"), document["events"][0]["skipped"].as_object().unwrap().len());
    let cell = |row: &[&str], name: &str| {
        let column = rows[0].iter().position(|one| *one == name).unwrap();
        row[column].to_owned()
    };
    let find = |what: &str, from: &str| {
        let found = rows.iter().find(|row| row[0] == what && row[3] == from);
        found.unwrap_or_else(|| panic!("no {what} from {from}"))
    };
    // nested has 4 trips (simlbr/README.md).
    let nested = find("loop", "0x401b0d");
    assert_eq!(cell(nested, "trips_always"), "4");
    let modes = &row(&document, "loops", "back", "0x401b0d")["iterations"]["modes"];
    assert_eq!(cell(nested, "modes").replace(' ', ","), modes.to_string().replace(['[', ']'], ""));
    assert_eq!(cell(nested, "timed"), "2397");
    let coin = find("edge", "0x401dc6");
    assert_eq!((cell(coin, "kind"), cell(coin, "hard")), ("conditional".into(), "true".into()));
    let executions = &row(&document, "edges", "from", "0x401dc6")["executions"];
    assert_eq!(cell(coin, "executions"), executions.to_string());
}

/// The branch at 0x401dc6 goes to 0x401db0, above the head 0x401dc3 of its loop (`objdump -d kernels`).
#[test]
fn a_rotated_loop_says_where_its_branch_goes() {
    let Some(folder) = shared("simlbr") else { return };
    let (recording, roots) = (folder.join("counts.perf.data"), folder.parent().unwrap());
    let all = ["branches", text(&recording), "--symfs", text(roots), "-n", "100"];
    let done = tdtool(all).succeeded();
    let mut lines = done.stdout.lines().skip_while(|line| !line.contains("0x401dc3 ← 0x401dc6"));
    let after = lines.nth(1).unwrap();
    assert!(after.contains("0x401db0") && after.contains("head"), "{after}");
    let document = read(&[text(&recording), "--symfs", text(roots)]);
    assert_eq!(row(&document, "loops", "back", "0x401dc6")["target"], "0x401db0");
}

/// A place that was named and does not exist is a mistake, not a program that is missing.
#[test]
fn places_of_programs_must_exist() {
    let place = Folder::new();
    let path = place.path().join("perf.data");
    std::fs::write(&path, made::file("x86_64", &made::records())).unwrap();
    let (file, absent) = (text(&path), place.path().join("absent"));
    for command in ["branches", "loads", "prefetch", "report"] {
        for (option, wrong) in
            [("--symfs", text(&absent)), ("--binary", text(&absent)), ("--symfs", file)]
        {
            let done = tdtool([command, file, option, wrong]);
            assert_eq!(done.code(), Some(1), "{command} {option} {wrong}");
            assert!(done.stderr.contains(&format!("`{option} {wrong}`")), "{}", done.stderr);
        }
    }
}

/// What the event counts distorts what is seen, and the text says how (simlbr/README.md: `--by`).
#[test]
fn the_bias_of_the_sampled_event_is_above_the_tables() {
    let Some(folder) = shared("simlbr") else { return };
    let roots = text(folder.parent().unwrap()).to_owned();
    for (name, bias) in [("levels", "sampled by time"), ("counts", "sampled by branches")] {
        let recording = folder.join(format!("{name}.perf.data"));
        let done = tdtool(["branches", text(&recording), "--symfs", &roots]).succeeded();
        let (head, _) = done.stdout.split_once("\n\n").unwrap();
        assert!(head.contains(bias), "{head}");
    }
}

/// Recordings of other hardware and of older kernels: branches as `perf script` counts them, or why there are none.
#[test]
fn branches_of_other_hardware_are_read_or_refused_with_the_reason() {
    let Some(folder) = shared("recordings") else { return };
    // AMD's LBR, which has no cycles; an old format: 416 entries, 386 of them with cycles.
    for (name, entries, has_cycles) in
        [("branch_stack_spec", 128, false), ("branch-4.14", 416, true)]
    {
        let document = read(&[text(&folder.join(format!("quipper/perf.data.{name}")))]);
        let event = &document["events"][0];
        assert_eq!(
            (&event["entries"], &event["has_cycles"]),
            (&entries.into(), &has_cycles.into())
        );
        assert!(!document["edges"].as_array().unwrap().is_empty(), "{name}");
        for one in document["loops"].as_array().unwrap() {
            let mean = one["trips"]["about"].as_f64();
            assert!(mean.is_none_or(|mean| mean >= 1.0), "a loop is entered at least once: {one}");
        }
    }
    for name in ["hybrid_topology", "group_desc-4.14", "lost_samples-4.4", "weight_struct"] {
        let done = tdtool(["branches", text(&folder.join(format!("quipper/perf.data.{name}")))]);
        assert_eq!(done.code(), Some(1), "{}", done.stderr);
    }
}

/// llvm-profgen 14 reads 62 ranges and 46 edges from it (simlbr/README.md).
#[test]
fn the_export_has_the_ranges_and_edges_of_llvm_profgen() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("counts.perf.data");
    let roots = text(folder.parent().unwrap()).to_owned();
    let done = tdtool(["branches", text(&recording), "--symfs", &roots, "--format", "profgen"]);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!((lines[0], lines[63]), ("62", "46"));
    let sum = |lines: &[&str]| -> u64 {
        lines.iter().map(|line| line.rsplit(':').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!((sum(&lines[1..63]), sum(&lines[64..])), (50_313, 51_936));
    assert_eq!(
        (lines[1], lines.last().copied()),
        ("401550-40157f:589", Some("401e1e->401e11:4342"))
    );
}

/// Truth of the run: 0x401e13 is mispredicted in 1 of 8 executions, 0x401dc6 in half of them. Both lead
/// straight on into the head of their loop.
#[test]
fn a_branch_below_the_limit_is_not_hard_and_hard_ones_are_always_listed() {
    let Some(folder) = shared("simlbr") else { return };
    let recording = folder.join("counts.perf.data");
    let roots = text(folder.parent().unwrap()).to_owned();
    let document = read(&[text(&recording), "--symfs", &roots]);
    let eighth = row(&document, "edges", "from", "0x401e13");
    assert_eq!(eighth["hard"], false, "{eighth}");
    let share = eighth["mispredicted"].as_f64().unwrap() / eighth["executions"].as_f64().unwrap();
    assert!((share - 0.125).abs() < 0.01, "{share}");
    for (back, head) in [("0x401e13", "0x401e11"), ("0x401dc6", "0x401dc3")] {
        let one = row(&document, "loops", "back", back);
        assert_eq!(one["head"], head);
        assert_eq!(one["taken"], row(&document, "edges", "from", back)["count"]);
    }
    let few = tdtool(["branches", text(&recording), "--symfs", &roots, "-n", "1"]);
    let hard: Vec<&Value> =
        document["edges"].as_array().unwrap().iter().filter(|edge| edge["hard"] == true).collect();
    let listed = |edge: &&&Value| {
        let branch = format!("{} ", edge["from"].as_str().unwrap());
        few.stdout.lines().any(|line| line.contains(&branch) && line.contains(" hard "))
    };
    assert_eq!(hard.iter().filter(listed).count(), hard.len(), "{}", few.stdout);
    assert!(hard.iter().any(|edge| edge["from"] == "0x401dc6"));
    let left = document["edges"].as_array().unwrap().len() - 1 - hard.len();
    assert!(few.stdout.contains(&format!("{left} more, none of them hard")), "{}", few.stdout);
}

/// What `perf inject --itrace` makes of an ETM trace: branch stacks of another architecture. Its branches are
/// listed; what they do is not decoded as x86 code.
#[test]
fn branches_of_another_architecture_are_listed_without_their_kinds() {
    let folder = Folder::new();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, made::file("aarch64", &made::records())).unwrap();
    let document = read(&[text(&path)]);
    let entries: u64 =
        document["events"].as_array().unwrap().iter().map(|e| e["entries"].as_u64().unwrap()).sum();
    assert_eq!(entries, 4, "{document}");
    let edges = document["edges"].as_array().unwrap();
    assert!(edges.iter().all(|e| e["from"].is_string() && e["kind"].is_null()), "{edges:?}");
}

/// The program is known by its build-id, wherever it lies.
#[test]
fn a_report_of_a_recording_takes_its_program_as_a_file() {
    let Some(folder) = shared("simlbr") else { return };
    let (recording, program) = (folder.join("counts.perf.data"), folder.join("kernels"));
    let without = tdtool(["report", text(&recording)]);
    assert!(!without.stdout.contains(" hash "), "{}", without.stdout);
    let done = tdtool(["report", text(&recording), "--binary", text(&program)]);
    assert!(done.stdout.contains(" hash "), "{}", done.stdout);
}
