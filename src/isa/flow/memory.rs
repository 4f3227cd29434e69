//! Access of the control-flow analysis to the program's memory.

/// The program's memory as loaded: what the analysis may read apart from the function's own code.
pub trait Memory {
    /// `length` bytes at `address` (p_vaddr), with relocations applied; `None` if the memory is not
    /// mapped or writable.
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>>;

    /// Whether `address`, outside the function, may be a jump target.
    fn is_code(&self, address: u64) -> bool {
        self.read(address, 1).is_some()
    }

    /// Whether a call of the function at `callee` returns; false only if it is known not to
    /// (`abort`), so that the code after the call is not reached.
    fn returns(&self, callee: u64) -> bool {
        let _ = callee;
        true
    }
}

/// No memory, so that no jump table can be read.
impl Memory for () {
    fn read(&self, _: u64, _: usize) -> Option<Vec<u8>> {
        None
    }
}
