//! The interactive drill-down: tree → functions → blocks → measured block.
//!
//! | file | concern |
//! |---|---|
//! | `run` | the event loop: messages → actions → effects → picture |
//! | `action` | what can happen, and what has to be done in return |
//! | `state` | everything the screens show and remember |
//! | `update` | action → new state and effects; pure |
//! | `view` | state → screen; pure |
//! | `events` | keys, signals and results in one queue |
//! | `background` | measuring, reading and profiling |
//! | `failure` | errors and panics in the background |
//! | `alternate_screen` | taking the terminal and giving it back |
//! | `output` | what the measured command writes |
//! | `look`, `tone`, `width` | characters, colours, columns |
//!
//! Nothing is drawn unless something has happened, and nothing polls: idle costs nothing.

mod action;
mod alternate_screen;
mod background;
mod events;
mod failure;
mod look;
mod output;
mod run;
mod state;
#[cfg(test)]
mod tests;
mod tone;
mod update;
mod view;
mod width;

pub use run::run;
