//! Recorded loads and stores as CSV.

use super::accesses::COLUMNS;
use crate::documents::loads::{LevelsRow, LoadRow, Loads, PathRow};
use crate::format::joined;
use crate::render::csv::{line, number, text};

/// Columns of the CSV form.
const CSV: &str = "what,event,module,address,share,samples,lfb,l1,l2,l3,ram,remote_ram,remote_cache,other,\
latency_mean,latency_p50,latency_p90,latency_p99,function,file,line,class,name,loads,writes,modified,slice,path_cycles,\
path,executions,share_of_executions\n";

/// The document as CSV: one row per load, store, variable, member, cache line, critical load, hard branch and missed
/// line of code; empty where a column does not apply.
pub fn csv(document: &Loads) -> String {
    let mut out = CSV.to_owned();
    let mut add = |cells: Cells| {
        out += &line(cells.all());
    };
    document.loads.iter().for_each(|load| add(Cells::of("load", load)));
    document.stores.iter().for_each(|store| add(Cells::of("store", store)));
    for one in &document.variables {
        add(Cells {
            what: one.kind.to_string(),
            event: one.event.to_string(),
            module: one.module.clone(),
            address: text(one.address),
            share: number(Some(one.share)),
            samples: (one.loads + one.stores).to_string(),
            levels: Some(one.levels.clone()),
            latencies: [number(one.latency_mean), String::new(), String::new(), String::new()],
            name: one.name.clone(),
            counts: [one.loads.to_string(), one.stores.to_string(), String::new()],
            ..Cells::default()
        });
    }
    for one in &document.fields {
        add(Cells {
            what: "field".into(),
            event: one.event.to_string(),
            address: format!("{:#x}", one.offset),
            share: number(Some(one.share)),
            samples: (one.loads + one.stores).to_string(),
            levels: Some(one.levels.clone()),
            latencies: [number(one.latency_mean), String::new(), String::new(), String::new()],
            class: one.of.clone(),
            name: one.member.clone(),
            counts: [one.loads.to_string(), one.stores.to_string(), String::new()],
            ..Cells::default()
        });
    }
    for one in &document.lines {
        add(Cells {
            what: "line".into(),
            address: one.address.to_string(),
            samples: (one.loads + one.writes).to_string(),
            class: one.sharing.to_string(),
            name: one.variables.join(" "),
            counts: [one.loads, one.writes, one.modified].map(|n| n.to_string()),
            ..Cells::default()
        });
    }
    for one in &document.critical {
        add(Cells {
            what: "critical".into(),
            event: one.event.to_string(),
            module: one.module.clone(),
            address: one.address.to_string(),
            share: number(Some(one.executed)),
            function: text(one.function.as_ref()),
            class: text(one.class),
            slice: one.slice.as_ref().map(joined).unwrap_or_default(),
            path: path(one.critical_path.as_ref()),
            ..Cells::default()
        });
    }
    for one in &document.hard_branches {
        add(Cells {
            what: "hard_branch".into(),
            event: one.event.to_string(),
            module: one.module.clone(),
            address: one.address.to_string(),
            share: number(Some(one.share)),
            samples: one.taken.to_string(),
            function: text(one.function.as_ref()),
            slice: one.slice.as_ref().map(joined).unwrap_or_default(),
            path: path(one.critical_path.as_ref()),
            executions: text(one.executions),
            share_of_executions: number(one.share_of_executions),
            ..Cells::default()
        });
    }
    for one in &document.code_misses {
        add(Cells {
            what: "code_miss".into(),
            event: one.event.to_string(),
            module: one.module.clone(),
            address: one.address.to_string(),
            share: number(Some(one.share)),
            samples: one.samples.to_string(),
            function: text(one.function.as_ref()),
            name: joined(one.sites.iter().map(|site| &site.address)),
            ..Cells::default()
        });
    }
    out
}

fn path(known: Option<&PathRow>) -> [String; 2] {
    known.map_or_else(Default::default, |path| {
        [number(Some(path.cycles)), joined(&path.instructions)]
    })
}

/// The cells of a row of CSV.
#[derive(Default)]
struct Cells {
    what: String,
    event: String,
    module: String,
    address: String,
    share: String,
    samples: String,
    levels: Option<LevelsRow>,
    latencies: [String; 4],
    function: String,
    file: String,
    line: String,
    class: String,
    name: String,
    /// Reads, writes, lines modified in another core's cache.
    counts: [String; 3],
    slice: String,
    /// Cycles and instructions of a critical path.
    path: [String; 2],
    executions: String,
    share_of_executions: String,
}

impl Cells {
    fn of(what: &str, load: &LoadRow) -> Self {
        Self {
            what: what.to_owned(),
            event: load.event.to_string(),
            module: load.module.clone(),
            address: load.address.to_string(),
            share: number(Some(load.share)),
            samples: load.samples.to_string(),
            levels: Some(load.levels.clone()),
            latencies: [
                number(load.latency_mean),
                text(load.latency_p50),
                text(load.latency_p90),
                text(load.latency_p99),
            ],
            function: text(load.function.as_ref()),
            file: text(load.file.as_ref()),
            line: text(load.line),
            class: text(load.class),
            name: text(load.field.as_ref()),
            counts: [String::new(), String::new(), load.snoop_modified.to_string()],
            slice: load.slice.as_ref().map(joined).unwrap_or_default(),
            executions: number(load.executions),
            ..Self::default()
        }
    }

    fn all(self) -> Vec<String> {
        let levels = COLUMNS.map(|(_, of)| {
            self.levels.as_ref().map(|levels| of(levels).to_string()).unwrap_or_default()
        });
        let Self { what, event, module, address, share, samples, .. } = self;
        let mut all = vec![what, event, module, address, share, samples];
        all.extend(levels);
        all.extend(self.latencies);
        all.extend([self.function, self.file, self.line, self.class, self.name]);
        all.extend(self.counts);
        all.push(self.slice);
        all.extend(self.path);
        all.extend([self.executions, self.share_of_executions]);
        all
    }
}
