//! What an analysis may read beside the code of its function.

/// What the analysis may read beside the function's own code: the program's memory as it is loaded.
pub trait Memory {
    /// `length` bytes at `address` (p_vaddr), with relocations applied; `None` where nothing is
    /// mapped or it may be written.
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>>;

    /// Whether `address` may be jumped to; asked of targets outside the function.
    fn is_code(&self, address: u64) -> bool {
        self.read(address, 1).is_some()
    }

    /// Whether a call of the function at `callee` comes back; true unless that is known not to be
    /// (`abort`): code behind such a call belongs to something else.
    fn returns(&self, callee: u64) -> bool {
        let _ = callee;
        true
    }
}

/// No memory: no jump table can be read.
impl Memory for () {
    fn read(&self, _: u64, _: usize) -> Option<Vec<u8>> {
        None
    }
}
