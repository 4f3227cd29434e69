//! Windows of many hosts: kept in a ring.

mod ring;
mod samples;
