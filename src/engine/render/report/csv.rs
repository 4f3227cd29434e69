//! The report as CSV: one row per node, bottleneck, info and software count.

use crate::documents::report::{InfoRow, Place, Report};
use crate::render::csv::{self, number};

/// Column names, the first line.
pub const HEADER: &str = "kind,id,parent,level,value,error,running,over,flagged,bottleneck,unit,\
                          missing,core,scope,begin,end";

/// Renders `report` without the header line.
pub fn rows(report: &Report) -> String {
    let mut out = String::new();
    let mut row = |fields: &[String]| {
        out.push_str(&csv::row(fields));
        out.push('\n');
    };
    for n in &report.nodes {
        let mut fields = vec![
            "node".into(),
            n.id.clone(),
            n.parent.clone().unwrap_or_default(),
            n.level.to_string(),
            number(n.value),
            number(n.error),
            number(n.running),
            flag(n.over),
            flag(Some(n.flagged)),
            flag(Some(n.bottleneck)),
            "ratio".into(),
            n.missing.clone().unwrap_or_default(),
        ];
        fields.extend(place(&n.place));
        row(&fields);
    }
    for b in &report.bottlenecks {
        row(&info("bottleneck", b));
    }
    for i in &report.info {
        row(&info("info", i));
    }
    for (name, value) in &report.software {
        let mut fields = vec![String::new(); 16];
        fields[0] = "software".into();
        fields[1].clone_from(name);
        fields[4] = number(*value);
        fields[5] = number(report.software_error.get(name).copied());
        fields[10] = if name.ends_with("_ms") { "ms".into() } else { String::new() };
        if value.is_none() {
            let why = report.software_missing.get(name);
            fields[11] = why.cloned().unwrap_or_else(|| "not measured".into());
        }
        let (begin, end) = report.interval.unzip();
        fields[14] = number(begin);
        fields[15] = number(end);
        row(&fields);
    }
    out
}

fn info(kind: &str, i: &InfoRow) -> Vec<String> {
    let mut fields = vec![
        kind.to_owned(),
        i.id.clone(),
        String::new(),
        String::new(),
        number(i.value),
        number(i.error),
        number(i.running),
        flag(i.over),
        String::new(),
        String::new(),
        i.unit.clone(),
        i.missing.clone().unwrap_or_default(),
    ];
    fields.extend(place(&i.place));
    fields
}

fn flag(value: Option<bool>) -> String {
    value.map(|v| u8::from(v).to_string()).unwrap_or_default()
}

fn place(place: &Place) -> [String; 4] {
    let (begin, end) = place.interval.unzip();
    [
        place.core.clone().unwrap_or_default(),
        place.scope.clone().unwrap_or_default(),
        number(begin),
        number(end),
    ]
}
