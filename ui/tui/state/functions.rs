//! The functions with samples: order, filter, cursor.

use super::{List, Load, matches};
use profile::hot::{HotFunction, Summary, Thread};
use std::cmp::Ordering;

/// Which samples are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Which {
    /// Index of the event; `None`: the first.
    pub event: Option<usize>,
    /// A thread by number or name, as on the command line; empty: all.
    pub threads: Vec<String>,
}

/// Functions whose source lines are looked up beforehand, hottest first.
pub const WITH_LINES: usize = 100;

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
    pub data: Load<Summary>,
    /// Newer than `data`, which is frozen.
    pub newer: Option<Box<Summary>>,
    /// Which samples they are of.
    pub which: Which,
    /// All threads with samples.
    pub threads: Vec<Thread>,
    /// The module that is shown alone.
    pub module: Option<String>,
    /// What a filter looks through, in small letters: with thousands of functions every letter typed
    /// would make it anew.
    lower: Vec<String>,
    /// The cursor's function, while other samples are counted.
    kept: Option<HotFunction>,
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
    pub fn fill(&mut self, hot: Summary, frozen: bool) {
        if frozen && self.data.ready().is_some() {
            self.newer = Some(Box::new(hot));
            return;
        }
        let same = |a: &HotFunction, b: &HotFunction| {
            (&a.path, a.start, &a.name) == (&b.path, b.start, &b.name)
        };
        let old = self.row(self.list.at).cloned().or_else(|| self.kept.take());
        self.newer = None;
        self.lower = hot.functions.iter().map(|f| text(f).to_lowercase()).collect();
        self.data = Load::Ready(hot);
        let new = old.and_then(|old| self.all().iter().position(|f| same(f, &old)));
        self.order_rows(new);
    }

    /// Shows what came while it was frozen.
    pub fn thaw(&mut self) {
        if let Some(hot) = self.newer.take() {
            self.fill(*hot, false);
        }
    }

    /// Other samples are asked for, and will come.
    pub fn reload(&mut self, which: Which) {
        self.kept = self.row(self.list.at).cloned();
        self.which = which;
        self.data = Load::Loading;
        self.newer = None;
        self.rebuild();
    }

    /// Shows the functions of the cursor's module alone, or all again.
    pub fn only_module(&mut self) -> Option<&str> {
        let here = self.row(self.list.at).map(|f| f.module.clone());
        self.module = if self.module.is_some() { None } else { here };
        self.rebuild();
        self.module.as_deref()
    }

    /// Filters and orders anew; the cursor stays on its function.
    pub fn rebuild(&mut self) {
        self.order_rows(self.rows.get(self.list.at).copied());
    }

    fn order_rows(&mut self, selected: Option<usize>) {
        let (order, invert) = (self.order, self.invert);
        let functions = self.data.ready().map_or(&[][..], |hot| &hot.functions);
        let (filter, module, lower) = (&self.filter, self.module.as_ref(), &self.lower);
        let is_small = !filter.chars().any(char::is_uppercase);
        let mut rows: Vec<usize> = (0..functions.len())
            .filter(|&i| module.is_none_or(|m| *m == functions[i].module))
            .filter(|&i| match lower.get(i) {
                _ if filter.is_empty() => true,
                Some(lower) if is_small => lower.contains(filter),
                _ => matches(&text(&functions[i]), filter),
            })
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
            let none = a.file.is_none().cmp(&b.file.is_none());
            none.then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line))).then(by_share)
        }
    }
}
