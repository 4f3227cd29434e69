//! `tdtool report`
