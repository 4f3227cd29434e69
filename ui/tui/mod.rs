//! The interactive drill-down: tree → functions → blocks → measured block.
//!
//! | file | concern |
//! |---|---|
//! | `run` | the event loop: messages → actions → effects → picture |
//! | `action` | what can happen, and what has to be done in return |
//! | `state` | everything the screens show and remember |
//! | `update` | action → new state and effects; pure |
//! | `view` | state → screen; pure |
//! | `events` | keys, signals, results and the output of the measured command in one queue |
//! | `background` | measuring, reading and profiling |
//! | `alternate_screen` | taking the terminal and giving it back |
//! | `look` | characters, colours, columns |
//!
//! Nothing is drawn unless something has happened, and nothing polls: idle costs nothing.

mod action;
mod alternate_screen;
mod background;
mod events;
mod look;
mod run;
mod state;
#[cfg(test)]
mod tests;
mod update;
mod view;

pub use run::run;
