//! Shared by all tests: the program, files, other programs, terminals, and quiet processors.
//!
//! Nothing here asserts anything about tdtool, but that the commands which it prints are its own.

pub mod child;
pub mod csv;
pub mod files;
pub mod flags;
pub mod growth;
pub mod perf_data;
pub mod printed;
pub mod processor;
pub mod pty;
pub mod quiet;
pub mod random;
pub mod run;
pub mod scripted;
pub mod scripted_code;
#[macro_use]
pub mod shown;
pub mod simlbr;
pub mod tools;
pub mod trial;
pub mod wait;

/// Ends the test, with a message, unless what it needs is there.
macro_rules! need {
    ($there:expr, $reason:expr) => {
        if !$there {
            eprintln!("skipped: {}", $reason);
            return;
        }
    };
}
