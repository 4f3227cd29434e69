//! The fleet: windows of many hosts, kept, exported and asked.

mod parquet;
mod queries;
mod ring;
mod sample;
mod samples;
