//! Recorded branches as CSV.

use super::super::csv::{number, row};
use crate::documents::branches::Branches;

/// The document as CSV: one row per edge, range, block, instruction and loop; empty where a column does not
/// apply.
pub fn csv(document: &Branches) -> String {
    let mut out =
        String::from("what,event,module,from,to,count,mispredicted,cycles_mean,cycles_median\n");
    let mut add = |fields: [String; 9]| {
        out += &row(fields);
        out.push('\n');
    };
    let none = String::new;
    for e in &document.edges {
        let wrong = e.mispredicted.map(|n| n.to_string()).unwrap_or_default();
        let (from, to) = (e.from.clone().unwrap_or_default(), e.to.clone().unwrap_or_default());
        let (mean, median) = (number(e.cycles_mean), number(e.cycles_median));
        let count = e.count.to_string();
        let module = e.module.clone();
        add(["edge".into(), e.event.to_string(), module, from, to, count, wrong, mean, median]);
    }
    for r in &document.ranges {
        let (mean, median) = (number(r.cycles_mean), number(r.cycles_median));
        let (first, last, count) = (r.first.clone(), r.last.clone(), r.count.to_string());
        let module = r.module.clone();
        add([
            "range".into(),
            r.event.to_string(),
            module,
            first,
            last,
            count,
            none(),
            mean,
            median,
        ]);
    }
    for b in &document.blocks {
        let (mean, median) = (number(b.cycles_mean), number(b.cycles_median));
        let (start, end, count) = (b.start.clone(), b.end.clone(), b.count.to_string());
        let module = b.module.clone();
        add(["block".into(), b.event.to_string(), module, start, end, count, none(), mean, median]);
    }
    for i in &document.instructions {
        let (event, at, n) = (i.event.to_string(), i.address.clone(), i.samples.to_string());
        let module = i.module.clone();
        add(["instruction".into(), event, module, at, none(), n, none(), none(), none()]);
    }
    for l in &document.loops {
        let (mean, median) = (number(l.iterations.mean), number(l.iterations.median));
        let (head, back, n) = (l.head.clone(), l.back.clone(), l.taken.to_string());
        let module = l.module.clone();
        add(["loop".into(), l.event.to_string(), module, back, head, n, none(), mean, median]);
    }
    out
}
