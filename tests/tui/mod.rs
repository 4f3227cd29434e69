//! The interactive screens in a real terminal.

mod lifetime;
mod screens;

/// The footer is drawn last.
const DRAWN: &str = "q quit";
