//! The fuzz targets' functions under the ordinary harness. The targets are a package of their own
//! (Cargo.toml here), which includes `parsers`, `recordings` and `branches`.

pub mod branches;
mod for_a_while;
pub mod parsers;
pub mod recordings;
