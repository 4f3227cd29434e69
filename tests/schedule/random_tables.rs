//! Random tables from a seed: masks, fixed counters, extra registers, top-down metrics, nodes
//! that read events and other nodes.

use crate::support::random::Random;
use std::fmt::Write as _;
use tma::tables::Table;

/// Up to 60 events and 40 nodes.
pub fn table(seed: u64) -> Table {
    let mut random = Random(seed);
    let events = 10 + random.below(50);
    let nodes = 5 + random.below(35);
    build(&mut random, events, nodes, 6)
}

/// Up to 12 events and 7 nodes: small enough to try everything.
pub fn small_table(seed: u64) -> Table {
    let mut random = Random(!seed);
    let events = 6 + random.below(7);
    let nodes = 3 + random.below(5);
    build(&mut random, events, nodes, 3)
}

fn build(random: &mut Random, events: u64, nodes: u64, most: u64) -> Table {
    let general = 3 + random.below(6);
    let general_smt = if random.one_in(2) { general } else { general.min(4) };
    let fixed = if random.one_in(4) { 0 } else { 3 };
    let topdown = if fixed > 0 { random.below(3) } else { 0 };
    let mut text = format!(
        "schema = 1\nname = \"random\"\ntitle = \"Random\"\nvendor = \"any\"\npmu = \"cpu\"\n\
         source = []\nclocks = \"CLOCKS\"\n[pipeline]\nwidth = 4\n[counters]\n\
         general = {general}\ngeneral_smt = {general_smt}\nfixed = {fixed}\n\
         topdown_levels = {topdown}\n[events]\n"
    );
    let clock = if fixed > 0 { "{ code = 0x3c, fixed = 1 }" } else { "{ code = 0x3c }" };
    let _ = writeln!(text, "CLOCKS = {clock}");
    let mut names = vec!["CLOCKS".to_owned()];
    if topdown > 0 {
        text.push_str("SLOTS = { umask = 4, fixed = 3, fixed_only = true }\n");
        names.push("SLOTS".into());
        for m in 0..topdown * 4 {
            let _ = writeln!(text, "METRIC{m} = {{ umask = {}, metric = {m} }}", 0x80 + m);
            names.push(format!("METRIC{m}"));
        }
    }
    for e in 0..events {
        let _ = writeln!(text, "E{e} = {{ code = {}{} }}", e + 1, restriction(random, general));
        names.push(format!("E{e}"));
    }
    for n in 0..nodes {
        let mut formula = Vec::new();
        for _ in 0..=random.below(most) {
            if n > 0 && random.one_in(5) {
                formula.push(format!("N{}", random.below(n)));
            } else {
                formula.push(names[random.index(names.len())].clone());
            }
        }
        let formula = formula.join(" + ");
        let (level, parent) = match n {
            0..=3 => (1, String::new()),
            _ => (2, format!("parent = \"N{}\"\n", random.below(4))),
        };
        let _ = writeln!(
            text,
            "[[node]]\nid = \"N{n}\"\nlevel = {level}\n{parent}formula = \"{formula} / CLOCKS\""
        );
    }
    Table::parse(&text, "random").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Nothing, a counter mask, a fixed counter or an extra register.
fn restriction(random: &mut Random, general: u64) -> String {
    match random.below(10) {
        0 => format!(", counters = [{}]", random.below(general)),
        1 => ", counters = [0, 1]".into(),
        2 => ", counters = [0, 1, 2, 3]".into(),
        3 => format!(", counters = [1, {}]", 2 + random.below(general - 2)),
        4 => format!(", fixed = {}", random.below(3)),
        5 => format!(", extra = \"offcore_rsp\", value = {}", random.below(6)),
        6 => format!(", extra = \"frontend\", value = {}", random.below(4)),
        _ => String::new(),
    }
}
