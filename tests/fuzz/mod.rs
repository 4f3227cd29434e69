//! The fuzz targets' functions under the ordinary harness. The targets are a package of their own
//! (Cargo.toml here), which includes all but `for_a_while`.

mod blocks;
pub mod branches;
mod counts;
mod for_a_while;
pub mod parsers;
mod programs;
pub mod recordings;
mod sessions;
mod tables;
