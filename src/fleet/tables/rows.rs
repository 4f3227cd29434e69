//! The columns of each table, and the rows that a window has in it.

use super::columns::{Cell, Column, Kind};
use super::{Table, VERSION};
use crate::window::{Block, Count, Function, Node, Owner, Window};
use Kind::{Float, Int, Text, Time};
use smol_str::SmolStr;
use tma::Address;

/// Of every table: version and window.
const KEY: [Column; 3] =
    [Column::every("schema", Int), Column::every("host", Text), Column::every("start_ms", Int)];

/// Of every table but that of windows: whose a row is.
const OWNER: [Column; 5] = [
    Column::some("build_id", Text),
    Column::some("module", Text),
    Column::some("cgroup", Text),
    Column::some("command", Text),
    Column::some("socket", Int),
];

const WINDOWS: [Column; 17] = [
    Column::every("start", Time),
    Column::some("seconds", Float),
    Column::some("busy_seconds", Float),
    Column::some("cost_seconds", Float),
    Column::some("lost", Int),
    Column::some("boot", Text),
    Column::some("uarch", Text),
    Column::some("processor", Text),
    Column::some("kernel", Text),
    Column::some("cpus", Int),
    Column::some("tool", Text),
    Column::some("region", Text),
    Column::some("service", Text),
    Column::some("instance_type", Text),
    Column::some("cost_per_hour", Float),
    Column::every("labels", Text),
    Column::every("notes", Text),
];

const NODES: [Column; 10] = [
    Column::every("node", Text),
    Column::some("parent", Text),
    Column::every("level", Int),
    Column::some("share", Float),
    Column::some("low", Float),
    Column::some("high", Float),
    Column::some("slots", Float),
    Column::some("cpu_seconds", Float),
    Column::every("source", Text),
    Column::some("missing", Text),
];

const FUNCTIONS: [Column; 5] = [
    Column::some("function_start", Text),
    Column::some("name", Text),
    Column::every("event", Text),
    Column::every("samples", Int),
    Column::some("cpu_seconds", Float),
];

const BLOCKS: [Column; 5] = [
    Column::some("function_start", Text),
    Column::every("block_start", Text),
    Column::every("block_end", Text),
    Column::every("samples", Int),
    Column::some("cycles", Float),
];

const COUNTS: [Column; 4] = [
    Column::every("event", Text),
    Column::some("value", Float),
    Column::every("source", Text),
    Column::some("missing", Text),
];

/// The columns of a table, in order.
pub fn columns(table: Table) -> Vec<Column> {
    let (owner, own): (&[Column], &[Column]) = match table {
        Table::Windows => (&[], &WINDOWS),
        Table::Nodes => (&OWNER, &NODES),
        Table::Functions => (&OWNER, &FUNCTIONS),
        Table::Blocks => (&OWNER, &BLOCKS),
        Table::Counts => (&OWNER, &COUNTS),
    };
    [&KEY, owner, own].concat()
}

/// Calls `row` with the values of each row that `window` has in `table`, in the order of [`columns`].
pub fn rows(table: Table, window: &Window, row: &mut dyn FnMut(Vec<Cell<'_>>)) {
    let mut owned = |of: &Owner, own: Vec<Cell<'_>>| {
        let mut cells = key(window);
        cells.extend(owner(of));
        cells.extend(own);
        row(cells);
    };
    match table {
        Table::Windows => {
            let mut cells = key(window);
            cells.extend(window_cells(window));
            row(cells);
        }
        Table::Nodes => window.nodes.iter().for_each(|of| owned(&of.owner, node(of))),
        Table::Functions => window.functions.iter().for_each(|of| owned(&of.owner, function(of))),
        Table::Blocks => window.blocks.iter().for_each(|of| owned(&of.owner, block(of))),
        Table::Counts => window.counts.iter().for_each(|of| owned(&of.owner, count(of))),
    }
}

fn key(of: &Window) -> Vec<Cell<'_>> {
    vec![Cell::Int(VERSION), Cell::text(&of.host.name), Cell::Int(of.start_ms)]
}

fn owner(of: &Owner) -> [Cell<'_>; 5] {
    let binary = of.binary.as_ref();
    let text = |of: &'_ Option<SmolStr>| of.as_ref().map(ToString::to_string);
    let or_null = |of: Option<String>| of.map_or(Cell::Null, Cell::text);
    [
        or_null(binary.and_then(|binary| text(&binary.build_id))),
        or_null(binary.map(|binary| binary.module.to_string())),
        or_null(text(&of.cgroup)),
        or_null(text(&of.command)),
        of.socket.map_or(Cell::Null, |socket| Cell::Int(socket.into())),
    ]
}

fn window_cells(of: &Window) -> Vec<Cell<'_>> {
    let host = &of.host;
    let label = |name: &str| host.labels.get(name).map(String::as_str);
    let cost = label("cost_per_hour").and_then(|cost| cost.parse().ok());
    let labels: serde_json::Map<_, _> =
        host.labels.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    vec![
        Cell::Int(of.start_ms),
        Cell::float(of.seconds),
        Cell::float(of.busy_seconds),
        Cell::float(of.cost_seconds),
        of.lost.map_or(Cell::Null, Cell::count),
        Cell::some(host.boot.as_deref()),
        Cell::some(host.uarch.as_deref()),
        known(&host.processor),
        known(&host.kernel),
        if host.cpus > 0 { Cell::Int(host.cpus.into()) } else { Cell::Null },
        known(&host.tool),
        Cell::some(label("region")),
        Cell::some(label("service")),
        Cell::some(label("instance_type")),
        Cell::float(cost.filter(|cost: &f64| cost.is_finite())),
        Cell::text(serde_json::Value::Object(labels).to_string()),
        Cell::text(of.notes.join("\n")),
    ]
}

/// A text that is empty where it is not known.
fn known(of: &str) -> Cell<'_> {
    Cell::some(Some(of).filter(|of| !of.is_empty()))
}

fn node(of: &Node) -> Vec<Cell<'_>> {
    vec![
        Cell::text(of.node.as_str()),
        Cell::some(of.parent.as_deref()),
        Cell::Int(of.level.into()),
        Cell::float(of.share),
        Cell::float(of.interval.map(|(low, _)| low)),
        Cell::float(of.interval.map(|(_, high)| high)),
        Cell::float(of.slots),
        Cell::float(of.cpu_seconds),
        Cell::text(of.source.word()),
        Cell::some(of.missing.as_deref()),
    ]
}

fn function(of: &Function) -> Vec<Cell<'_>> {
    vec![
        function_start(of.start),
        Cell::some(of.name.as_deref()),
        Cell::text(of.event.as_str()),
        Cell::count(of.samples),
        Cell::float(of.cpu_seconds),
    ]
}

fn block(of: &Block) -> Vec<Cell<'_>> {
    vec![
        function_start(of.function),
        Cell::text(of.start.to_string()),
        Cell::text(of.end.to_string()),
        Cell::count(of.samples),
        Cell::float(of.cycles),
    ]
}

fn count(of: &Count) -> Vec<Cell<'_>> {
    vec![
        Cell::text(of.event.as_str()),
        Cell::float(of.value),
        Cell::text(of.source.word()),
        Cell::some(of.missing.as_deref()),
    ]
}

/// The address of a function: no code is at 0, which stands for an unknown one.
fn function_start(of: Address) -> Cell<'static> {
    if of == Address(0) { Cell::Null } else { Cell::text(of.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Batch, Data};
    use crate::window::{Binary, Host, SCHEMA, Source};

    /// A window with a row in each table.
    fn window() -> Window {
        let owner = Owner {
            binary: Some(Binary { build_id: None, module: "app".into() }),
            socket: Some(1),
            ..Owner::default()
        };
        let labels = [("cost_per_hour".to_owned(), "NaN".to_owned())].into();
        Window {
            schema: SCHEMA.to_owned(),
            host: Host { name: "h".to_owned(), labels, ..Host::default() },
            start_ms: 1,
            seconds: None,
            busy_seconds: None,
            cost_seconds: None,
            lost: Some(u64::MAX),
            nodes: vec![Node {
                owner: owner.clone(),
                node: "Retiring".into(),
                parent: None,
                level: 1,
                share: None,
                interval: Some((0.0, 0.5)),
                slots: None,
                cpu_seconds: None,
                source: Source::Sampled,
                missing: Some("why".to_owned()),
            }],
            functions: vec![Function {
                owner: owner.clone(),
                start: Address(0),
                name: None,
                event: "cycles".into(),
                samples: 1,
                cpu_seconds: None,
            }],
            blocks: vec![Block {
                owner: owner.clone(),
                function: Address(0x10),
                start: Address(0x20),
                end: Address(0x30),
                samples: 1,
                cycles: Some(2.0),
            }],
            counts: vec![Count {
                owner,
                event: "cycles".into(),
                value: Some(1.0),
                source: Source::Counted,
                missing: None,
            }],
            notes: vec!["a".to_owned(), "b".to_owned()],
        }
    }

    #[test]
    fn each_row_has_a_value_of_its_type_for_each_column() {
        for table in Table::ALL {
            let mut found = 0;
            rows(table, &window(), &mut |cells| {
                found += 1;
                let columns = columns(table);
                assert_eq!(cells.len(), columns.len(), "{table:?}");
                for (column, cell) in columns.iter().zip(cells) {
                    let fits = match cell {
                        Cell::Null => !column.required,
                        Cell::Text(_) => column.kind == Text,
                        Cell::Int(_) => matches!(column.kind, Int | Time),
                        Cell::Float(_) => column.kind == Float,
                    };
                    assert!(fits, "{table:?}.{}", column.name);
                }
            });
            assert_eq!(found, 1, "{table:?}");
        }
    }

    #[test]
    fn what_is_not_known_has_no_value() {
        let mut batch = Batch::new(Table::Windows);
        batch.add(&window());
        for name in ["seconds", "cost_per_hour"] {
            assert_eq!(batch.column(name), Some(&Data::Float(vec![None])), "{name}");
        }
        assert_eq!(batch.column("cpus"), Some(&Data::Int(vec![None])));
        assert_eq!(batch.column("lost"), Some(&Data::Int(vec![Some(i64::MAX)])));
        batch.retain(|start| start != 1);
        assert_eq!(batch.rows(), 0);
    }
}
