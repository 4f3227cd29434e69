//! The functions with samples: which samples, order, filter, cursor; their callers and callees.

use super::list::{List, Wanted};
use super::load::{Failure, HasFunctions, Load, Searchable, Texts};
use profile::hot::{Caller, Calls as Found, HotFunction, SELF, Summary, Thread};
use std::cmp::Ordering;

/// Functions whose source lines are looked up in advance, hottest first.
pub const WITH_LINES: usize = 100;

/// The order of the rows.
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

    /// Its name on the screen.
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
    /// Later data than `data`, which is frozen.
    pub newer: Option<Box<Searchable<Summary>>>,
    /// Which samples they are of.
    pub samples_of: SampleFilter,
    /// All threads with samples.
    pub threads: Vec<Thread>,
    /// Only functions of this module are shown.
    pub module: Option<String>,
    /// The texts that a filter matches, in lower case: built once, because there may be thousands of
    /// functions.
    lower: Texts,
    /// The function at the cursor before other samples were asked for.
    selected: Option<HotFunction>,
    /// Indices of the functions that are shown, in order.
    pub rows: Vec<usize>,
    /// The hottest of them.
    top: Option<usize>,
    pub list: List,
    pub order: Order,
    pub invert: bool,
    pub filter: String,
    /// Samples instead of shares.
    pub samples: bool,
}

impl Functions {
    /// Number of the event whose samples are shown.
    pub fn event(&self) -> usize {
        let shown = || self.data.ready().map_or(0, |hot| hot.event_number);
        self.samples_of.event.unwrap_or_else(shown)
    }

    /// All functions.
    pub fn all(&self) -> &[HotFunction] {
        self.data.ready().map_or(&[], |hot| &hot.functions)
    }

    /// The function in a row.
    pub fn row(&self, row: usize) -> Option<&HotFunction> {
        self.all().get(*self.rows.get(row)?)
    }

    /// Shows new data, or keeps it for later while the numbers are frozen. The cursor stays on its
    /// function; one that has not left the first row stays there, on what is hottest now.
    pub fn fill(&mut self, hot: Searchable<Summary>, frozen: bool) {
        if frozen && self.data.ready().is_some() {
            self.newer = Some(Box::new(hot));
            return;
        }
        let moved = self.list.at > 0 || self.selected.is_some();
        let old = self.row(self.list.at).cloned().or_else(|| self.selected.take());
        let old = old.filter(|_| moved);
        self.newer = None;
        self.lower = hot.lower;
        self.data = Load::Ready(hot.document);
        let new = old.and_then(|old| self.all().iter().position(|f| is_same(f, &old)));
        self.rebuild_at(new);
    }

    /// Shows the data that arrived while the numbers were frozen.
    pub fn thaw(&mut self) {
        if let Some(hot) = self.newer.take() {
            self.fill(*hot, false);
        }
    }

    /// Empties the screen until the functions of other samples arrive.
    pub fn reload(&mut self, samples_of: SampleFilter) {
        self.selected = self.row(self.list.at).cloned();
        self.samples_of = samples_of;
        self.data = Load::Loading;
        self.newer = None;
        self.rebuild();
    }

    /// Shows only functions of the module at the cursor, or all again.
    pub fn only_module(&mut self) -> Option<&str> {
        let here = self.row(self.list.at).map(|f| f.module.clone());
        self.module = if self.module.is_some() { None } else { here };
        self.rebuild();
        self.module.as_deref()
    }

    /// Filters and orders the rows; the cursor stays on its function.
    pub fn rebuild(&mut self) {
        self.rebuild_at(self.rows.get(self.list.at).copied());
    }

    fn rebuild_at(&mut self, selected: Option<usize>) {
        let (order, invert) = (self.order, self.invert);
        let functions = self.data.ready().map_or(&[][..], |hot| &hot.functions);
        let (module, lower) = (self.module.as_ref(), &self.lower);
        let wanted = Wanted::new(&self.filter);
        let mut rows: Vec<usize> = (0..functions.len())
            .filter(|&i| module.is_none_or(|m| *m == functions[i].module))
            .filter(|&i| wanted.is_in_lower(lower.get(i), || text(&functions[i])))
            .collect();
        rows.sort_by(|&a, &b| {
            let one = compare(order, &functions[a], &functions[b]);
            if invert { one.reverse() } else { one }
        });
        // Functions are numbered by their samples.
        self.top = rows.iter().copied().min();
        let at = selected.and_then(|s| rows.iter().position(|&i| i == s));
        self.list.refill(rows.len(), at);
        self.rows = rows;
    }

    /// The text of a row in lower case.
    pub fn lower(&self, row: usize) -> Option<&str> {
        self.lower.get(*self.rows.get(row)?)
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        self.row(row).map(text).unwrap_or_default()
    }

    /// The hottest function that is shown.
    pub fn top(&self) -> Option<&HotFunction> {
        self.all().get(self.top?)
    }

    /// Its row.
    pub fn hottest(&self) -> Option<usize> {
        let top = self.top?;
        self.rows.iter().position(|i| *i == top)
    }

    /// The row of the next function by samples: with fewer than at the cursor, or with more.
    pub fn next_hot(&self, fewer: bool) -> Option<usize> {
        let now = *self.rows.get(self.list.at)?;
        let rows = self.rows.iter().enumerate();
        // Functions are numbered by their samples.
        let next = if fewer {
            rows.filter(|(_, i)| **i > now).min_by_key(|(_, i)| **i)
        } else {
            rows.filter(|(_, i)| **i < now).max_by_key(|(_, i)| **i)
        };
        next.map(|(row, _)| row)
    }
}

/// Whether both are the same function, whatever its samples and its place in the list.
pub fn is_same(a: &HotFunction, b: &HotFunction) -> bool {
    (&a.path, a.start, &a.name) == (&b.path, b.start, &b.name)
}

impl HasFunctions for Summary {
    fn texts(&self) -> impl Iterator<Item = String> {
        self.functions.iter().map(text)
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

/// A choice of samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleFilter {
    /// Index of the event; `None`: the first.
    pub event: Option<usize>,
    /// Threads by number or name, as on the command line; empty: all.
    pub threads: Vec<String>,
    /// Nanoseconds since the first sample, from and to; `None`: all.
    pub time: Option<(u64, u64)>,
}

/// `worker (4711)`.
pub fn thread_name(thread: &Thread) -> String {
    match thread.name.as_str() {
        "" => thread.tid.to_string(),
        name => format!("{name} ({})", thread.tid),
    }
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CallRow<'a> {
    /// It calls the function.
    Caller(&'a Caller),
    /// The function calls it.
    Callee(&'a Caller),
}

/// The screen.
#[derive(Debug, Default)]
pub struct Calls {
    /// The functions that were opened one from the other, and the cursor in each; the last one is shown.
    pub trail: Vec<(String, usize)>,
    pub data: Load<Found>,
    pub list: List,
}

impl Calls {
    /// The function that is shown.
    pub fn function(&self) -> &str {
        self.trail.last().map_or("", |(name, _)| name)
    }

    /// Shows what is known of the function `name`, if it is the one that is shown.
    pub fn fill(&mut self, name: &str, found: Result<Found, Failure>) {
        if self.function() != name {
            return;
        }
        self.data = match found {
            Ok(found) => Load::Ready(found),
            Err(why) => Load::Missing(why.to_string()),
        };
        let rows = self.data.ready().map_or(0, |all| all.callers.len() + all.callees.len());
        self.list = List::default();
        self.list.refill(rows, Some(self.trail.last().map_or(0, |(_, at)| *at)));
    }

    /// A row: callers first.
    pub fn row(&self, row: usize) -> Option<CallRow<'_>> {
        let all = self.data.ready()?;
        match row.checked_sub(all.callers.len()) {
            None => all.callers.get(row).map(CallRow::Caller),
            Some(below) => all.callees.get(below).map(CallRow::Callee),
        }
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        self.row(row).map_or_else(String::new, |row| row.function().name.clone())
    }
}

impl<'a> CallRow<'a> {
    /// The other function.
    pub fn function(self) -> &'a Caller {
        match self {
            Self::Caller(of) | Self::Callee(of) => of,
        }
    }

    /// Its name, if it is a function whose calls can be shown.
    pub fn name(self) -> Option<&'a str> {
        let name = self.function().name.as_str();
        (![SELF, "[top]", "[unknown]"].contains(&name)).then_some(name)
    }
}
