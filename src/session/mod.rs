//! The recorded session file: versioned, checksummed, safe against a cut-off write.
