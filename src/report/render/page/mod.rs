//! The report as one page of HTML that loads nothing: for a phone or a wide screen, dark or light, with the keyboard.
//!
//! | file | concern |
//! |---|---|
//! | `whole` | the page: head, sections in order, findings, notes |
//! | `verdict` | what most of the time goes to, in a sentence |
//! | `shown` | short names; what is not shown, and why |
//! | `tree` | the counted tree, and metrics |
//! | `estimate` | the estimated tree, with functions, loops and blocks |
//! | `code` | hot functions, blocks and callers |
//! | `source` | lines and instructions of functions |
//! | `intervals` | level 1, or software counts, over time |
//! | `software` | software counts |
//! | `pieces` | bars, shares and sections that all of them use |
//! | `page.css` | the style |

mod code;
mod estimate;
mod intervals;
mod pieces;
mod shown;
mod software;
mod source;
mod tree;
mod verdict;
mod whole;

pub use whole::page;
