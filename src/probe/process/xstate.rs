//! Vector, mask and x87 registers of a stopped thread, from the XSAVE area (PTRACE_GETREGSET with
//! NT_X86_XSTATE) in standard format (Intel SDM vol. 1, chapter 13).

use nix::errno::Errno;
use raw_cpuid::CpuId;

/// Longest area; AMX tiles alone are 8 KiB.
const LONGEST: usize = 64 << 10;
/// `NT_X86_XSTATE` (linux/elf.h).
const NT_X86_XSTATE: libc::c_long = 0x202;
/// Bytes of the legacy area, as FXSAVE writes it (Intel SDM vol. 1, table 10-2).
const LEGACY: usize = 512;
/// Numbers of the state components (Intel SDM vol. 1, 13.1).
const AVX: u32 = 2;
const MASKS: u32 = 5;
const UPPER_HALVES: u32 = 6;
const UPPER_REGISTERS: u32 = 7;

/// Vector, mask and x87 registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vectors {
    /// zmm0 to zmm31, or as many as there are; bytes that the processor does not have are 0.
    pub vectors: Vec<[u8; 64]>,
    /// Mask registers k0 to k7; empty without AVX-512.
    pub masks: Vec<u64>,
    /// MXCSR.
    pub mxcsr: u32,
    /// x87 control word.
    pub x87_control: u16,
    /// The x87 registers st(0) to st(7), 80 bits each.
    pub x87: Vec<[u8; 10]>,
}

/// Reads the vector, mask and x87 registers of a stopped thread.
pub fn vectors(tid: i32) -> Result<Vectors, Errno> {
    Ok(decode(&area(tid)?, component))
}

/// The XSAVE area of a stopped thread.
fn area(tid: i32) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0u8; LONGEST];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the kernel writes at most `iov_len` bytes to `iov_base`, which `bytes` owns, and the
    // length written to `vector`; both live beyond the call.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, &raw mut vector) };
    Errno::result(got)?;
    bytes.truncate(vector.iov_len);
    Ok(bytes)
}

/// Offset and size of a state component, which differ between processors.
fn component(number: u32) -> Option<(usize, usize)> {
    let info = CpuId::new().get_extended_state_info()?;
    let mut all = info.iter();
    let state = all.find(|s| s.subleaf == number)?;
    Some((state.offset() as usize, state.size() as usize))
}

fn decode(area: &[u8], component: impl Fn(u32) -> Option<(usize, usize)>) -> Vectors {
    let part = |number: u32| -> &[u8] {
        let range = component(number).map(|(offset, size)| offset..offset + size);
        range.and_then(|range| area.get(range)).unwrap_or_default()
    };
    let legacy = |from: usize, length: usize| area.get(from..from + length).unwrap_or_default();
    let (low, middle, high) = (legacy(160, 256), part(AVX), part(UPPER_HALVES));
    let mut vectors: Vec<[u8; 64]> = (0..16)
        .map(|number| {
            let mut all = [0; 64];
            copy(low, number, &mut all[..16]);
            copy(middle, number, &mut all[16..32]);
            copy(high, number, &mut all[32..]);
            all
        })
        .collect();
    vectors.extend(part(UPPER_REGISTERS).as_chunks::<64>().0);
    let masks = part(MASKS).as_chunks().0.iter().map(|m| u64::from_le_bytes(*m)).collect();
    let x87 = (0..8).map(|number| {
        let mut register = [0; 10];
        register.copy_from_slice(legacy(32 + 16 * number, 10).get(..10).unwrap_or(&[0; 10]));
        register
    });
    let control = legacy(0, 2).try_into().map_or(0, u16::from_le_bytes);
    let mxcsr = legacy(24, 4).try_into().map_or(0, u32::from_le_bytes);
    debug_assert!(area.is_empty() || area.len() >= LEGACY);
    Vectors { vectors, masks, mxcsr, x87_control: control, x87: x87.collect() }
}

/// Copies element `number` of `from` to `to`.
fn copy(from: &[u8], number: usize, to: &mut [u8]) {
    let length = to.len();
    if let Some(part) = from.get(number * length..(number + 1) * length) {
        to.copy_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_vector_register_are_put_together() {
        // Offsets of Intel SDM vol. 1, 13.4 and 13.5.1; AVX-512 at offsets chosen here.
        let place = |number| match number {
            AVX => Some((576, 256)),
            MASKS => Some((832, 64)),
            UPPER_HALVES => Some((896, 512)),
            UPPER_REGISTERS => Some((1408, 1024)),
            _ => None,
        };
        let mut area = vec![0u8; 2432];
        area[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
        area[160 + 16..160 + 32].fill(1);
        area[576 + 16..576 + 32].fill(2);
        area[896 + 32..896 + 64].fill(3);
        area[1408..1408 + 64].fill(4);
        area[832 + 8] = 5;
        let found = decode(&area, place);
        assert_eq!(found.mxcsr, 0x1f80);
        assert_eq!(found.vectors.len(), 32);
        let parts = [[1u8; 16].as_slice(), &[2; 16], &[3; 32]].concat();
        assert_eq!(found.vectors[1].as_slice(), parts);
        assert_eq!(found.vectors[16], [4; 64]);
        assert_eq!((found.masks[0], found.masks[1]), (0, 5));
        // A processor with SSE alone.
        let few = decode(&area[..576], |_| None);
        assert_eq!((few.vectors.len(), few.masks.len()), (16, 0));
        assert_eq!(few.vectors[1][..16], [1; 16]);
    }
}
