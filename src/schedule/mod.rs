//! Counter constraints; events → groups.
