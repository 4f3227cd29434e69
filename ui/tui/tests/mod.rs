//! The drill-down without a terminal: journeys on `update`, pictures of every screen, random actions.

mod choices;
pub mod example;
mod journeys;
mod pictures;
mod random;
mod typing;
