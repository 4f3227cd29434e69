//! Plans of groups, judged by a checker that shares no code with the scheduler.

mod checker;
mod constraints;
mod first_fit;
mod matching;
mod plans;
mod random_tables;
