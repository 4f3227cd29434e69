//! A request for a file: its limits, and how it fails.

use std::time::Duration;

/// How long a file may take, and how large it may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time for a file.
    pub time: Duration,
    /// Bytes of a file.
    pub bytes: u64,
}

/// Why a file was not got.
#[cfg_attr(not(feature = "debuginfod"), expect(dead_code, reason = "there is no client"))]
pub(super) enum Failure {
    /// The server does not have it.
    Absent,
    /// The response is rejected: the reason.
    File(String),
    /// The server does not answer: the reason.
    Server(String),
}
