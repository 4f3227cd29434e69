//! The functions with samples: order, filter, cursor.

use super::{List, Load, matches};
use std::cmp::Ordering;
use tdtool::profile::hot::{HotFunction, Skid};

/// What a recording says of functions.
#[derive(Debug, Clone)]
pub struct Hot {
    /// Hottest first.
    pub functions: Vec<HotFunction>,
    /// The event that the samples are of.
    pub event: String,
    pub skid: Skid,
    pub samples: u64,
    pub lost: u64,
    pub notes: Vec<String>,
}

/// Orders of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Share,
    Name,
    Module,
    Line,
}

impl Order {
    /// The next one.
    pub fn next(self) -> Self {
        match self {
            Order::Share => Order::Name,
            Order::Name => Order::Module,
            Order::Module => Order::Line,
            Order::Line => Order::Share,
        }
    }

    /// For people.
    pub fn label(self) -> &'static str {
        match self {
            Order::Share => "share",
            Order::Name => "name",
            Order::Module => "module",
            Order::Line => "source line",
        }
    }
}

/// The screen.
#[derive(Debug, Default)]
pub struct Functions {
    pub data: Load<Hot>,
    /// Indices of the functions that are shown, in order.
    pub rows: Vec<usize>,
    pub list: List,
    pub order: Order,
    pub invert: bool,
    pub filter: String,
    /// Samples instead of shares.
    pub samples: bool,
}

impl Functions {
    /// All functions.
    pub fn all(&self) -> &[HotFunction] {
        self.data.ready().map_or(&[], |hot| &hot.functions)
    }

    /// The function in a row.
    pub fn row(&self, row: usize) -> Option<&HotFunction> {
        self.all().get(*self.rows.get(row)?)
    }

    /// New data: the cursor stays on the same function if it is still there.
    pub fn fill(&mut self, hot: Hot) {
        let same = |a: &HotFunction, b: &HotFunction| {
            (&a.path, a.start, &a.name) == (&b.path, b.start, &b.name)
        };
        let old = self.row(self.list.at).cloned();
        self.data = Load::Ready(hot);
        let new = old.and_then(|old| self.all().iter().position(|f| same(f, &old)));
        self.order_rows(new);
    }

    /// Filters and orders anew; the cursor stays on its function.
    pub fn rebuild(&mut self) {
        self.order_rows(self.rows.get(self.list.at).copied());
    }

    fn order_rows(&mut self, selected: Option<usize>) {
        let (order, invert) = (self.order, self.invert);
        let functions = self.data.ready().map_or(&[][..], |hot| &hot.functions);
        let filter = &self.filter;
        let mut rows: Vec<usize> = (0..functions.len())
            .filter(|&i| filter.is_empty() || matches(&text(&functions[i]), filter))
            .collect();
        rows.sort_by(|&a, &b| {
            let one = compare(order, &functions[a], &functions[b]);
            if invert { one.reverse() } else { one }
        });
        let at = selected.and_then(|s| rows.iter().position(|&i| i == s));
        self.list.refill(rows.len(), at);
        self.rows = rows;
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        self.row(row).map(text).unwrap_or_default()
    }

    /// The row of the hottest function that is shown.
    pub fn hottest(&self) -> Option<usize> {
        self.rows.iter().enumerate().min_by_key(|(_, i)| **i).map(|(row, _)| row)
    }

    /// The row of the next function by heat, below or above the cursor's.
    pub fn next_hot(&self, colder: bool) -> Option<usize> {
        let now = *self.rows.get(self.list.at)?;
        let rows = self.rows.iter().enumerate();
        // Functions are numbered by heat.
        let next = if colder {
            rows.filter(|(_, i)| **i > now).min_by_key(|(_, i)| **i)
        } else {
            rows.filter(|(_, i)| **i < now).max_by_key(|(_, i)| **i)
        };
        next.map(|(row, _)| row)
    }
}

fn text(f: &HotFunction) -> String {
    format!("{} {} {}", f.name, f.module, f.file.as_deref().unwrap_or(""))
}

fn compare(order: Order, a: &HotFunction, b: &HotFunction) -> Ordering {
    let by_share = b.share.total_cmp(&a.share);
    match order {
        Order::Share => by_share,
        Order::Name => a.name.cmp(&b.name).then(by_share),
        Order::Module => a.module.cmp(&b.module).then(by_share),
        // Functions without a line come last.
        Order::Line => {
            let key = |f: &HotFunction| (f.file.is_none(), f.file.clone(), f.line);
            key(a).cmp(&key(b)).then(by_share)
        }
    }
}
