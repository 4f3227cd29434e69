//! Recorded branches as CSV.

use crate::documents::branches::{Branches, EdgeRow, EventRow, IndirectRow, LoopRow};
use crate::render::csv::{line, number, text};

/// The first columns are those of all rows; `histogram` is `cycles:count` of blocks and iterations, `trips_histogram`
/// `trips:count`.
const COLUMNS: &str = "what,event,module,from,to,count,mispredicted,cycles_mean,cycles_median,name,to_name,to_module,\
kind,share,marked,executions,hard,trips_whole,trips_mean,trips_histogram,trips_truncated,trips_at_least,trips_always,\
trips_about,trips_mean_at_least,timed,modes,histogram,target,unknown\n";

/// The document as CSV: one row per event, what of it was skipped, module, edge, range, block, instruction, loop, call,
/// indirect branch and target of one; empty where a column does not apply.
pub fn csv(document: &Branches) -> String {
    let mut out = COLUMNS.to_owned();
    let mut add = |cells: Cells| {
        out += &line(cells.all());
    };
    document.events.iter().for_each(|event| events(event, &mut add));
    document.edges.iter().for_each(|edge| add(Cells::edge(edge)));
    for r in &document.ranges {
        add(Cells {
            from: r.first.to_string(),
            to: r.last.to_string(),
            count: r.count.to_string(),
            cycles: [r.cycles_mean, r.cycles_median],
            ..Cells::of("range", r.event, &r.module)
        });
    }
    for b in &document.blocks {
        add(Cells {
            from: b.start.to_string(),
            to: b.end.to_string(),
            count: b.count.to_string(),
            cycles: [b.cycles_mean, b.cycles_median],
            name: b.function.clone(),
            timed: b.timed.to_string(),
            histogram: pairs(&b.histogram),
            ..Cells::of("block", b.event, &b.module)
        });
    }
    for i in &document.instructions {
        add(Cells {
            from: i.address.to_string(),
            count: i.samples.to_string(),
            name: text(i.function.as_ref()),
            ..Cells::of("instruction", i.event, &i.module)
        });
    }
    document.loops.iter().for_each(|one| add(Cells::of_loop(one)));
    for c in &document.calls {
        add(Cells {
            count: c.count.to_string(),
            name: c.from.clone(),
            to_name: c.to.clone(),
            to_module: text(c.to_module.as_ref()),
            ..Cells::of("call", c.event, &c.module)
        });
    }
    document.indirect.iter().for_each(|one| indirect(one, &mut add));
    out
}

/// An event, its skipped entries by reason, its modules.
fn events(event: &EventRow, add: &mut impl FnMut(Cells)) {
    add(Cells {
        count: event.entries.to_string(),
        name: event.name.clone(),
        kind: event.bias.clone(),
        ..Cells::of("event", event.event, &event.source)
    });
    let s = &event.skipped;
    for (name, count) in [
        ("duplicated", s.duplicated),
        ("wrong_path", s.wrong_path),
        ("backward", s.backward),
        ("long", s.long),
        ("between_modules", s.between_modules),
        ("saturated", s.saturated),
        ("unmapped", s.unmapped),
    ] {
        add(Cells {
            count: count.to_string(),
            name: name.to_owned(),
            ..Cells::of("skipped", event.event, "")
        });
    }
    for one in &event.modules {
        add(Cells {
            count: one.entries.to_string(),
            ..Cells::of("module", event.event, &one.module)
        });
    }
}

/// An indirect branch, and a row for each of its targets.
fn indirect(one: &IndirectRow, add: &mut impl FnMut(Cells)) {
    add(Cells {
        from: one.from.to_string(),
        count: one.count.to_string(),
        mispredicted: text(one.mispredicted),
        name: text(one.function.as_ref()),
        kind: one.kind.to_string(),
        marked: one.marked.to_string(),
        hard: one.hard.to_string(),
        ..Cells::of("indirect", one.event, &one.module)
    });
    for target in &one.targets {
        add(Cells {
            from: one.from.to_string(),
            to: text(target.to),
            count: target.count.to_string(),
            mispredicted: text(target.mispredicted),
            name: text(one.function.as_ref()),
            to_name: text(target.function.as_ref()),
            to_module: text(target.module.as_ref()),
            kind: one.kind.to_string(),
            share: number(Some(target.share)),
            marked: target.marked.to_string(),
            ..Cells::of("target", one.event, &one.module)
        });
    }
}

/// The cells of a row.
#[derive(Default)]
struct Cells {
    what: &'static str,
    event: String,
    module: String,
    from: String,
    to: String,
    count: String,
    mispredicted: String,
    /// Mean and median.
    cycles: [Option<f64>; 2],
    name: String,
    to_name: String,
    to_module: String,
    kind: String,
    share: String,
    marked: String,
    executions: String,
    hard: String,
    trips: [String; 8],
    timed: String,
    modes: String,
    histogram: String,
    target: String,
    unknown: String,
}

impl Cells {
    fn of(what: &'static str, event: usize, module: &str) -> Self {
        Self { what, event: event.to_string(), module: module.to_owned(), ..Self::default() }
    }

    fn edge(e: &EdgeRow) -> Self {
        Self {
            from: text(e.from),
            to: text(e.to),
            count: e.count.to_string(),
            mispredicted: text(e.mispredicted),
            cycles: [e.cycles_mean, e.cycles_median],
            name: text(e.from_function.as_ref()),
            to_name: text(e.to_function.as_ref()),
            to_module: text(e.to_module.as_ref()),
            kind: text(e.kind),
            share: number(Some(e.share)),
            marked: e.marked.to_string(),
            executions: text(e.executions),
            hard: e.hard.to_string(),
            ..Self::of("edge", e.event, &e.module)
        }
    }

    fn of_loop(l: &LoopRow) -> Self {
        let (trips, own) = (&l.trips, &l.iterations);
        Self {
            from: l.back.to_string(),
            to: l.head.to_string(),
            count: l.taken.to_string(),
            cycles: [own.mean, own.median],
            name: text(l.function.as_ref()),
            trips: [
                trips.whole.to_string(),
                number(trips.mean),
                pairs(&trips.histogram),
                trips.truncated.to_string(),
                text(trips.at_least),
                text(trips.always),
                number(trips.about),
                number(trips.mean_at_least),
            ],
            timed: own.count.to_string(),
            modes: own.modes.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
            histogram: pairs(&own.histogram),
            target: l.target.to_string(),
            unknown: text(l.unknown.as_ref()),
            ..Self::of("loop", l.event, &l.module)
        }
    }

    fn all(self) -> Vec<String> {
        let mut all = vec![self.what.to_owned(), self.event, self.module, self.from, self.to];
        all.extend([self.count, self.mispredicted]);
        all.extend(self.cycles.map(number));
        all.extend([self.name, self.to_name, self.to_module, self.kind, self.share, self.marked]);
        all.extend([self.executions, self.hard]);
        all.extend(self.trips);
        all.extend([self.timed, self.modes, self.histogram, self.target, self.unknown]);
        all
    }
}

/// `80:469 230:243`.
fn pairs(all: &[(u64, u64)]) -> String {
    all.iter().map(|(value, n)| format!("{value}:{n}")).collect::<Vec<_>>().join(" ")
}
