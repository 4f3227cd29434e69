//! What a user does and sees, without a terminal: journeys on `update`, pictures of every screen,
//! and whatever a monkey types.

mod choices;
mod journeys;
pub mod made_up;
mod pictures;
mod random;
