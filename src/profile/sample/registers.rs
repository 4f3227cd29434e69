//! The REGS_USER and REGS_INTR fields.

use super::cursor::{Cursor, Malformed};
use super::fields::Registers;

/// `PERF_SAMPLE_REGS_ABI_64`; 0 means none: a kernel thread has no user registers.
const ABI_64: u64 = 2;

/// Decodes a field of registers; `mask` has a bit for each.
pub fn decode(
    body: &mut Cursor,
    mask: u64,
    field: &'static str,
) -> Result<Option<Registers>, Malformed> {
    let abi = body.u64(field)?;
    if abi == 0 {
        return Ok(None);
    }
    let words = body.words::<1>(mask.count_ones().into(), field)?;
    let numbers = (0..64).filter(|n| mask >> n & 1 != 0);
    let values = numbers.zip(words).map(|(number, [value])| (number, value)).collect();
    Ok(Some(Registers { wide: abi == ABI_64, values }))
}
