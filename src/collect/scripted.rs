//! A kernel that follows a script.
