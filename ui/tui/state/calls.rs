//! Callers and callees of a function.

use super::list::List;
use super::load::{Failure, Load};
use profile::hot::{Caller, Calls as Found, SELF};

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
