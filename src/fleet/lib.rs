//! Windows of many hosts.
//!
//! | module | concern |
//! |---|---|
//! | [`window`] | what one host did in a short time: the rows of every table of a fleet |
//! | [`ring`] | the windows of one host in a folder of bounded size |
//! | [`metrics`] | intervals of a host as OpenMetrics text |
//! | [`tables`] | these tables: their columns, and the rows of a window |
//! | [`parquet`] | the tables in Parquet files, behind the feature `parquet` |
//!
//! Nothing here measures, prints or exits: `engine` fills windows.

pub mod metrics;
pub mod parquet;
pub mod ring;
pub mod tables;
pub mod window;
