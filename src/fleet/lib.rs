//! Windows of many hosts.
//!
//! | module | concern |
//! |---|---|
//! | [`window`] | what one host did in a short time: the rows of every table of a fleet |
//!
//! Nothing here measures, prints or exits: `engine` fills windows.

pub mod window;
