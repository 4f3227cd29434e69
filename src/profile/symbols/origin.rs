//! Where and when a recording was made.

/// Where and when a recording was made: decides whether the kernel, vdso and perf map files of this
/// machine apply to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Whether it was made on this host with the kernel release that runs now.
    pub live: bool,
    /// Whether it was made since the last boot: kernel addresses are the same now.
    pub this_boot: bool,
    /// Kernel release (`uname -r`), if known.
    pub kernel: Option<String>,
    /// Host name, if known.
    pub host: Option<String>,
    /// Architecture (`uname -m`), if known.
    pub architecture: Option<String>,
}
