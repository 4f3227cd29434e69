//! The drill-down without a terminal: journeys on `update`, pictures of every screen, random actions.

mod calls;
mod choices;
mod comparison;
mod estimated;
mod estimated_example;
mod estimated_so_far;
pub mod example;
mod frames;
mod intervals;
mod journeys;
mod pictures;
mod random;
mod typing;
