//! The fuzz targets' functions under the ordinary harness. The targets are a package of their own
//! (Cargo.toml here), which includes `parsers` and `recordings`.

mod for_a_while;
pub mod parsers;
pub mod recordings;
