//! Rows of a table, column by column.

use super::{Cell, Column, Kind, Table, columns, rows};
use crate::window::Window;

/// The values of a column; `None` where a row has none.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Text.
    Text(Vec<Option<String>>),
    /// Numbers and times.
    Int(Vec<Option<i64>>),
    /// Numbers of double precision.
    Float(Vec<Option<f64>>),
}

impl Data {
    /// So many rows without a value.
    #[cfg(feature = "parquet")]
    pub(crate) fn missing(kind: Kind, rows: usize) -> Self {
        match kind {
            Kind::Text => Self::Text(vec![None; rows]),
            Kind::Int | Kind::Time => Self::Int(vec![None; rows]),
            Kind::Float => Self::Float(vec![None; rows]),
        }
    }
}

/// Rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    table: Table,
    columns: Vec<(Column, Data)>,
    rows: usize,
}

impl Data {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(Vec::new()),
            Kind::Int | Kind::Time => Self::Int(Vec::new()),
            Kind::Float => Self::Float(Vec::new()),
        }
    }

    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Self::Text(all), Cell::Text(of)) => all.push(Some(of.into_owned())),
            (Self::Int(all), Cell::Int(of)) => all.push(Some(of)),
            (Self::Float(all), Cell::Float(of)) => all.push(Some(of)),
            (Self::Text(all), _) => all.push(None),
            (Self::Int(all), _) => all.push(None),
            (Self::Float(all), _) => all.push(None),
        }
    }

    fn retain(&mut self, keep: &[bool]) {
        fn only<T>(all: &mut Vec<T>, keep: &[bool]) {
            let mut keep = keep.iter();
            all.retain(|_| keep.next().is_some_and(|keep| *keep));
        }
        match self {
            Self::Text(all) => only(all, keep),
            Self::Int(all) => only(all, keep),
            Self::Float(all) => only(all, keep),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Text(all) => all.clear(),
            Self::Int(all) => all.clear(),
            Self::Float(all) => all.clear(),
        }
    }
}

impl Batch {
    /// No rows of `table`.
    pub fn new(table: Table) -> Self {
        let all = columns(table).into_iter().map(|column| (column, Data::new(column.kind)));
        Self { table, columns: all.collect(), rows: 0 }
    }

    /// Rows of `table` with these values of its columns, which are of their types and equally many.
    #[cfg(feature = "parquet")]
    pub(crate) fn of(table: Table, data: Vec<Data>, rows: usize) -> Self {
        Self { table, columns: columns(table).into_iter().zip(data).collect(), rows }
    }

    /// Its table.
    pub fn table(&self) -> Table {
        self.table
    }

    /// Its columns, in order, with their values.
    pub fn columns(&self) -> &[(Column, Data)] {
        &self.columns
    }

    /// The values of a column.
    pub fn column(&self, name: &str) -> Option<&Data> {
        self.columns.iter().find(|(column, _)| column.name == name).map(|(_, data)| data)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the rows of `window`.
    pub fn add(&mut self, window: &Window) {
        let Self { table, columns, rows: count } = self;
        rows(*table, window, &mut |cells| {
            columns.iter_mut().zip(cells).for_each(|((_, data), cell)| data.push(cell));
            *count += 1;
        });
    }

    /// Keeps the rows of windows whose start `keep` takes.
    pub fn retain(&mut self, keep: impl Fn(i64) -> bool) {
        let Some(Data::Int(starts)) = self.column("start_ms") else { return };
        let keep: Vec<bool> = starts.iter().map(|start| start.is_some_and(&keep)).collect();
        self.columns.iter_mut().for_each(|(_, data)| data.retain(&keep));
        self.rows = keep.into_iter().filter(|keep| *keep).count();
    }

    /// Drops all rows.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(|(_, data)| data.clear());
        self.rows = 0;
    }
}
