//! The worker's code: position-independent assembly, copied into the shared region.
//!
//! It has no library, no heap and no other memory. It waits for a command, runs the scheduled
//! segments and stores their ticks. A page fault of the block maps a page and starts everything
//! again with all memory refilled; any other exception ends the command. Signal handlers never
//! return to the kernel: they go on where they like, on the worker's own stack.

use super::layout::{self as at, context, mail};
use std::arch::global_asm;

global_asm!(
    ".pushsection .text.tdtool_sandbox, \"ax\", @progbits",
    ".balign 64",
    ".globl tdtool_sandbox_start",
    ".hidden tdtool_sandbox_start",
    ".globl tdtool_sandbox_end",
    ".hidden tdtool_sandbox_end",
    "tdtool_sandbox_start:",
    ".Ltd_base:",
    // Offsets that the runner needs; see `Entry`.
    ".long .Ltd_enter - .Ltd_base",
    ".long .Ltd_return - .Ltd_base",
    ".long .Ltd_signal - .Ltd_base",
    ".long .Ltd_after_wait - .Ltd_base",
    ".long .Ltd_after_wake - .Ltd_base",
    ".long .Ltd_after_map - .Ltd_base",
    ".long .Ltd_after_unmap - .Ltd_base",
    ".long .Ltd_after_below - .Ltd_base",
    ".long .Ltd_after_above - .Ltd_base",
    // Leave nothing mapped but the region, then install the filter.
    ".Ltd_enter:",
    "cld",
    "lea rsp, [rip + .Ltd_base + {STACK}]",
    "lea rbx, [rip + .Ltd_base + {MAIL} + {RANGES}]",
    "xor ebp, ebp",
    "2:",
    "mov rdi, [rbx]",
    "mov rsi, [rbx + 8]",
    "test rsi, rsi",
    "jz 4f",
    "mov eax, 11",
    "syscall",
    "test eax, eax",
    "jz 3f",
    "inc ebp",
    "3:",
    "add rbx, 16",
    "jmp 2b",
    "4:",
    "mov [rip + .Ltd_base + {MAIL} + {LEFT_MAPPED}], ebp",
    "mov eax, 317",
    "mov edi, 1",
    "xor esi, esi",
    "lea rdx, [rip + .Ltd_base + {MAIL} + {FILTER}]",
    "syscall",
    "mov [rip + .Ltd_base + {MAIL} + {FILTER_RESULT}], eax",
    "jmp .Ltd_idle",
    // Every command ends here, with its status in ebx.
    ".Ltd_finish:",
    "mov [rip + .Ltd_base + {MAIL} + {STATUS}], ebx",
    ".Ltd_idle:",
    "lea rdi, [rip + .Ltd_base + {MAIL}]",
    "mov dword ptr [rdi], {IDLE}",
    "mov eax, 202",
    "mov esi, 1",
    "mov edx, 1",
    "xor r10d, r10d",
    "xor r8d, r8d",
    "xor r9d, r9d",
    "syscall",
    ".Ltd_after_wake:",
    ".Ltd_wait:",
    "lea rdi, [rip + .Ltd_base + {MAIL}]",
    "mov edx, [rdi]",
    "cmp edx, {COMMAND}",
    "je .Ltd_command",
    "mov eax, 202",
    "xor esi, esi",
    "xor r10d, r10d",
    "xor r8d, r8d",
    "xor r9d, r9d",
    "syscall",
    ".Ltd_after_wait:",
    "jmp .Ltd_wait",
    // The code may have been rewritten through the other view: iretq serialises.
    ".Ltd_command:",
    "lea rsp, [rip + .Ltd_base + {STACK}]",
    "mov rdx, rsp",
    "mov eax, ss",
    "push rax",
    "push rdx",
    "pushfq",
    "mov eax, cs",
    "push rax",
    "lea rax, [rip + 5f]",
    "push rax",
    "iretq",
    "5:",
    "cmp dword ptr [rip + .Ltd_base + {MAIL} + {OPERATION}], {RUN}",
    "jne .Ltd_unmap",
    // Refill the physical pages in use and run the schedule from its start.
    ".Ltd_restart:",
    "lea rsp, [rip + .Ltd_base + {STACK}]",
    "mov ecx, [rip + .Ltd_base + {MAIL} + {PAGE_COUNT}]",
    "cmp ecx, [rip + .Ltd_base + {MAIL} + {PHYSICAL_COUNT}]",
    "cmova ecx, [rip + .Ltd_base + {MAIL} + {PHYSICAL_COUNT}]",
    "shl ecx, 9",
    "lea rdi, [rip + .Ltd_base + {PHYSICAL}]",
    "mov rax, [rip + .Ltd_base + {MAIL} + {PATTERN}]",
    "rep stosq",
    "mov dword ptr [rip + .Ltd_base + {CONTEXT} + {INDEX}], 0",
    ".Ltd_next:",
    "mov ecx, [rip + .Ltd_base + {CONTEXT} + {INDEX}]",
    "xor ebx, ebx",
    "cmp ecx, [rip + .Ltd_base + {MAIL} + {COUNT}]",
    "jae .Ltd_finish",
    "lea rbx, [rip + .Ltd_base + {SCHEDULE}]",
    "mov eax, [rbx + rcx*4]",
    "mov edx, eax",
    "and edx, 31",
    "shr eax, 16",
    "mov [rip + .Ltd_base + {CONTEXT} + {DITHER}], eax",
    "shl edx, 5",
    "lea rbx, [rip + .Ltd_base + {MAIL} + {SEGMENTS}]",
    "add rbx, rdx",
    "mov eax, [rbx + 8]",
    "mov [rip + .Ltd_base + {CONTEXT} + {REPEAT}], eax",
    "jmp qword ptr [rbx]",
    // A segment ends here, having stored both time stamps. Put right whatever a block may have
    // left behind, then keep the ticks.
    ".Ltd_return:",
    "stmxcsr [rip + .Ltd_base + {CONTEXT} + {MXCSR_END}]",
    "fnstsw word ptr [rip + .Ltd_base + {CONTEXT} + {X87_END}]",
    "lea rsp, [rip + .Ltd_base + {STACK}]",
    "push 0x202",
    "popfq",
    "fninit",
    "push 0x1f80",
    "ldmxcsr [rsp]",
    "mov rax, [rip + .Ltd_base + {CONTEXT} + {END}]",
    "sub rax, [rip + .Ltd_base + {CONTEXT} + {START}]",
    "mov edx, 0xffffffff",
    "cmp rax, rdx",
    "cmova rax, rdx",
    "mov ecx, [rip + .Ltd_base + {CONTEXT} + {INDEX}]",
    "and ecx, 2047",
    "lea rbx, [rip + .Ltd_base + {TICKS}]",
    "mov [rbx + rcx*4], eax",
    "inc ecx",
    "mov [rip + .Ltd_base + {CONTEXT} + {INDEX}], ecx",
    "jmp .Ltd_next",
    // Unmap everything but the region, whatever a block has made of the list of its pages. Page
    // by page where the kernel refuses a range, because of a sealed page in it.
    ".Ltd_unmap:",
    "xor edi, edi",
    "lea rsi, [rip + .Ltd_base]",
    "mov eax, 11",
    "syscall",
    ".Ltd_after_below:",
    "mov ebp, eax",
    "lea rdi, [rip + .Ltd_base + {SIZE}]",
    "mov rsi, {USER_TOP}",
    "sub rsi, rdi",
    "mov eax, 11",
    "syscall",
    ".Ltd_after_above:",
    "or ebp, eax",
    "jz 7f",
    "xor r12d, r12d",
    "6:",
    "cmp r12d, [rip + .Ltd_base + {MAIL} + {PAGE_COUNT}]",
    "jae 7f",
    "lea rbx, [rip + .Ltd_base + {PAGES}]",
    "mov rdi, [rbx + r12*8]",
    "mov esi, 4096",
    "mov eax, 11",
    "syscall",
    ".Ltd_after_unmap:",
    "inc r12d",
    "jmp 6b",
    "7:",
    "mov dword ptr [rip + .Ltd_base + {MAIL} + {PAGE_COUNT}], 0",
    "jmp .Ltd_restart",
    // An exception: edi signal, rsi siginfo, rdx ucontext. Signal delivery keeps the alignment
    // check flag, so flags come first.
    ".Ltd_signal:",
    "push 0x202",
    "popfq",
    "lea rbx, [rip + .Ltd_base + {MAIL} + {FAULT_RECORD}]",
    "mov [rbx], edi",
    "mov eax, [rsi + 8]",
    "mov [rbx + 4], eax",
    "mov rax, [rsi + 16]",
    "mov [rbx + 8], rax",
    "mov rbp, [rdx + 168]",
    "mov [rbx + 16], rbp",
    "mov r13, [rdx + 192]",
    "mov [rbx + 24], r13",
    "mov r14, [rdx + 200]",
    "mov [rbx + 32], r14",
    "mov r12, [rdx + 216]",
    "mov [rbx + 40], r12",
    "mov ebx, {FAULT}",
    // Only a missing page that the block's own code touched as data is mapped.
    "cmp edi, 11",
    "jne .Ltd_finish_signal",
    "cmp r14, 14",
    "jne .Ltd_finish_signal",
    "test r13d, 0x11",
    "jnz .Ltd_finish_signal",
    "lea rax, [rip + .Ltd_base + {CODE}]",
    "sub rbp, rax",
    "cmp rbp, {CODE_SIZE}",
    "jae .Ltd_finish_signal",
    "and r12, -4096",
    "cmp r12, [rip + .Ltd_base + {MAIL} + {LOWEST}]",
    "jb .Ltd_finish_signal",
    "mov rax, {USER_TOP}",
    "cmp r12, rax",
    "jae .Ltd_finish_signal",
    "lea rax, [rip + .Ltd_base]",
    "mov rcx, r12",
    "sub rcx, rax",
    "cmp rcx, {SIZE}",
    "jb .Ltd_finish_signal",
    "mov ecx, [rip + .Ltd_base + {MAIL} + {PAGE_COUNT}]",
    "mov ebx, {TOO_MANY_PAGES}",
    "cmp ecx, [rip + .Ltd_base + {MAIL} + {PAGE_LIMIT}]",
    "jae .Ltd_finish_signal",
    "xor edx, edx",
    "mov eax, ecx",
    "div dword ptr [rip + .Ltd_base + {MAIL} + {PHYSICAL_COUNT}]",
    "shl edx, 12",
    "lea rdi, [rip + .Ltd_base + {PHYSICAL}]",
    "add rdi, rdx",
    "xor esi, esi",
    "mov edx, 4096",
    "mov r10d, 3",
    "mov r8, r12",
    "mov eax, 25",
    "syscall",
    ".Ltd_after_map:",
    "mov ebx, {MAP_REFUSED}",
    "cmp rax, r12",
    "jne .Ltd_finish_signal",
    "mov ecx, [rip + .Ltd_base + {MAIL} + {PAGE_COUNT}]",
    "lea rbx, [rip + .Ltd_base + {PAGES}]",
    "mov [rbx + rcx*8], r12",
    "inc dword ptr [rip + .Ltd_base + {MAIL} + {PAGE_COUNT}]",
    "jmp .Ltd_restart",
    ".Ltd_finish_signal:",
    "lea rsp, [rip + .Ltd_base + {STACK}]",
    "fninit",
    "jmp .Ltd_finish",
    "tdtool_sandbox_end:",
    ".popsection",
    STACK = const at::STACK_TOP,
    MAIL = const at::MAIL,
    RANGES = const mail::RANGES,
    LEFT_MAPPED = const mail::LEFT_MAPPED,
    FILTER = const mail::FILTER,
    FILTER_RESULT = const mail::FILTER_RESULT,
    STATUS = const mail::STATUS,
    IDLE = const mail::IDLE,
    COMMAND = const mail::COMMAND,
    OPERATION = const mail::OPERATION,
    RUN = const mail::RUN,
    PAGE_COUNT = const mail::PAGE_COUNT,
    PAGE_LIMIT = const mail::PAGE_LIMIT,
    PHYSICAL_COUNT = const mail::PHYSICAL_COUNT,
    PHYSICAL = const at::PHYSICAL,
    PATTERN = const mail::PATTERN,
    LOWEST = const mail::LOWEST,
    COUNT = const mail::COUNT,
    SEGMENTS = const mail::SEGMENTS,
    FAULT_RECORD = const mail::FAULT_RECORD,
    FAULT = const mail::FAULT,
    MAP_REFUSED = const mail::MAP_REFUSED,
    TOO_MANY_PAGES = const mail::TOO_MANY_PAGES,
    CONTEXT = const at::CONTEXT,
    INDEX = const context::INDEX,
    DITHER = const context::DITHER,
    REPEAT = const context::REPEAT,
    START = const context::START,
    END = const context::END,
    MXCSR_END = const context::MXCSR_END,
    X87_END = const context::X87_END,
    SCHEDULE = const at::SCHEDULE,
    TICKS = const at::TICKS,
    PAGES = const at::PAGES,
    CODE = const at::CODE,
    CODE_SIZE = const at::CODE_SIZE,
    SIZE = const at::SIZE,
    USER_TOP = const at::USER_TOP,
);

unsafe extern "C" {
    static tdtool_sandbox_start: u8;
    static tdtool_sandbox_end: u8;
}

/// Offsets in the runtime's code, in the order of its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Where the worker starts.
    Enter = 0,
    /// Where segments end.
    Return = 1,
    /// The signal handler.
    Signal = 2,
    /// After the `futex` call that waits.
    AfterWait = 3,
    /// After the `futex` call that wakes.
    AfterWake = 4,
    /// After the `mremap` call.
    AfterMap = 5,
    /// After the `munmap` call for one page.
    AfterUnmap = 6,
    /// After the `munmap` call for all below the region.
    AfterBelow = 7,
    /// After the `munmap` call for all above the region.
    AfterAbove = 8,
}

/// The runtime's code.
pub fn image() -> &'static [u8] {
    let start = &raw const tdtool_sandbox_start;
    let end = &raw const tdtool_sandbox_end;
    // SAFETY: both symbols delimit the assembly above, which is never written.
    unsafe { std::slice::from_raw_parts(start, end as usize - start as usize) }
}

/// The offset of an entry in [`image`].
pub fn offset(entry: Entry) -> usize {
    let at = entry as usize * 4;
    let bytes = &image()[at..at + 4];
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_fits_its_page_and_every_filtered_site_follows_a_syscall() {
        assert!(image().len() <= at::CODE - at::RUNTIME);
        use Entry::{AfterAbove, AfterBelow, AfterMap, AfterUnmap, AfterWait, AfterWake};
        for site in [AfterWait, AfterWake, AfterMap, AfterUnmap, AfterBelow, AfterAbove] {
            let behind = offset(site);
            assert_eq!(image()[behind - 2..behind], [0x0f, 0x05], "{site:?}");
        }
    }
}
