//! Flags that an instruction leaves undefined and a later one reads: what a program does then depends on the
//! processor. (`imul` keeps ZF on AMD's cores and changes it on Intel's: a loop that ended on one never ended on the
//! other.)

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, RflagsBits};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};
use std::path::Path;

/// Instructions that only keep all flags for later: `syscall` in r11.
const KEEPING: [Mnemonic; 4] =
    [Mnemonic::Pushf, Mnemonic::Pushfq, Mnemonic::Lahf, Mnemonic::Syscall];

/// Instructions in code at this address that read a flag which is undefined there: each by its address. Code is gone
/// through as it lies, from each beginning to the next jump that is always taken.
pub fn undefined_reads(code: &[u8], address: u64) -> Vec<u64> {
    let (mut undefined, mut found) = (RflagsBits::NONE, Vec::new());
    for instruction in &mut Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
        let is_read = instruction.rflags_read() & undefined != 0;
        if is_read && !KEEPING.contains(&instruction.mnemonic()) {
            found.push(instruction.ip());
        }
        undefined = match ends(&instruction) {
            true => RflagsBits::NONE,
            false => undefined & !instruction.rflags_modified() | instruction.rflags_undefined(),
        };
    }
    found
}

/// Whether what comes next in memory does not come next, or with flags that are not known.
fn ends(instruction: &Instruction) -> bool {
    let flow = instruction.flow_control();
    instruction.code() == Code::INVALID
        || !matches!(flow, FlowControl::Next | FlowControl::ConditionalBranch)
}

/// The same in the functions of a program or object file whose symbols have a size and `wanted` takes: each with its
/// name.
pub fn undefined_reads_of(file: &Path, mut wanted: impl FnMut(&str) -> bool) -> Vec<String> {
    let content = std::fs::read(file).expect("a file");
    let Ok(elf) = object::File::parse(&*content) else { return Vec::new() };
    let mut found = Vec::new();
    for symbol in elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
        let name = symbol.name().unwrap_or_default();
        let section = symbol.section_index().and_then(|index| elf.section_by_index(index).ok());
        let Some(section) = section.filter(|_| wanted(name)) else { continue };
        let code = section.data_range(symbol.address(), symbol.size()).ok().flatten();
        let reads = undefined_reads(code.unwrap_or_default(), symbol.address());
        found.extend(reads.iter().map(|at| format!("{name}+{:#x}", at - symbol.address())));
    }
    found
}
