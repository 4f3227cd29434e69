//! Windows of many hosts.
//!
//! | module | concern |
//! |---|---|
//! | [`window`] | what one host did in a short time: the rows of every table of a fleet |
//! | [`ring`] | the windows of one host in a folder of bounded size |
//!
//! Nothing here measures, prints or exits: `engine` fills windows.

pub mod ring;
pub mod window;
