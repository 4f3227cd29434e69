//! Small loops whose patterns follow from their text, and the kernels of `../shared/simlbr`, whose patterns its
//! README.md states.

use super::{Access, Function, Level, classify};
use crate::class::{Ahead, Class, Kind};
use isa::code::{Syntax, assemble};
use isa::flow::{Image, decoded_flow};
use isa::program::{function_around, read_ranges};
use std::path::Path;

/// Pattern of the load at instruction `number`, from 0; slices are numbers of instructions, too.
fn found(text: &str, number: usize) -> Access {
    let code = assemble(text, Syntax::Intel).unwrap();
    let (flow, instructions) = decoded_flow(&code, 0, &[], &());
    let at = |number: usize| instructions[number].ip();
    let index = |ip: u64| instructions.iter().position(|one| one.ip() == ip).unwrap() as u64;
    let mut access = classify(&Function::new(&flow, &instructions), at(number)).unwrap();
    for level in &mut access.levels {
        level.slice.iter_mut().for_each(|ip| *ip = index(*ip));
        renumber(&mut level.class, &index);
    }
    access
}

fn renumber(class: &mut Class<u64>, index: &dyn Fn(u64) -> u64) {
    match class {
        Class::OffsetOfChase { of, .. } | Class::IndirectDelta { of } => *of = index(*of),
        Class::Indirect { of, inner, .. } => {
            *of = index(*of);
            renumber(inner, index);
        }
        _ => {}
    }
}

fn inner(text: &str, number: usize) -> (Class<u64>, Vec<u64>) {
    let level = found(text, number).levels.remove(0);
    (level.class, level.slice)
}

fn stride(step: i64) -> Box<Class<u64>> {
    Box::new(Class::Stride(step))
}

#[test]
fn constants_and_strides() {
    let text = "a: mov rax,[rdi]; add rdx,[rsi+8*rcx+16]; add rcx,2; cmp rcx,r8; jne a; ret";
    assert_eq!(inner(text, 0), (Class::Constant, vec![]));
    assert_eq!(inner(text, 1), (Class::Stride(16), vec![2]));
    let text = "a: add rdx,[rdi]; lea rdi,[rdi+r8*8]; dec ecx; jne a; ret";
    assert_eq!(inner(text, 0), (Class::UnknownStride, vec![1]));
    // A counter of 32 bits that counts down, with its sign extended.
    let text = "a: movsxd rax,ecx; add rdx,[rdi+rax*4]; sub ecx,3; jns a; ret";
    assert_eq!(inner(text, 1), (Class::Stride(-12), vec![0, 2]));
    // The next address is made in another register, and moved at the end.
    let text = "a: lea rax,[rdi+24]; add rdx,[rdi]; mov rdi,rax; cmp rdi,rsi; jne a; ret";
    assert_eq!(inner(text, 1), (Class::Stride(24), vec![0, 2]));
}

#[test]
fn a_mask_makes_a_stride_begin_anew() {
    let text = "a: mov eax,ecx; and eax,0xff; add rdx,[rdi+rax*8]; inc ecx; jmp a";
    let level = found(text, 2).levels.remove(0);
    assert_eq!((level.class, level.wraps), (Class::Stride(8), Some(2048)));
    // A step as large as the table is none.
    let text = "a: mov eax,ecx; and eax,0xff; add rdx,[rdi+rax*8]; add ecx,0x300; jmp a";
    assert_eq!(inner(text, 2).0, Class::Complex { ahead: Ahead::Directly });
}

#[test]
fn lists_and_their_members() {
    let text = "a: mov rdi,[rdi+8]; add rdx,[rdi+24]; test rdi,rdi; jne a; ret";
    assert_eq!(inner(text, 0), (Class::Chase { scale: 1, offset: 8 }, vec![0]));
    assert_eq!(inner(text, 1), (Class::OffsetOfChase { of: 0, offset: 24 }, vec![0]));
    // p = p->a->b
    let text = "a: mov rax,[rdi]; mov rdi,[rax+8]; dec ecx; jne a; ret";
    assert!(matches!(inner(text, 0).0, Class::Chase { .. }));
    assert!(matches!(inner(text, 1).0, Class::Chase { .. }));
    // i = next[i]
    let text = "a: mov eax,[rdi+rax*4]; dec ecx; jne a; ret";
    assert_eq!(inner(text, 0).0, Class::Chase { scale: 4, offset: 0 });
    // The left or the right child.
    let text = "a: cmp rsi,[rdi]; mov rax,[rdi+8]; mov rdi,[rdi+16]; cmovl rdi,rax; test rdi,rdi; jne a; ret";
    assert!(matches!(inner(text, 1).0, Class::Chase { .. }), "{:?}", inner(text, 1));
    assert!(!inner(text, 0).0.is_computable_ahead());
    // A binary search: which half, a loaded value says.
    let text =
        "a: shr rcx,1; lea rax,[rdi+rcx*8]; cmp rsi,[rax]; cmovge rdi,rax; cmp rcx,1; ja a; ret";
    assert_eq!(inner(text, 2).0, Class::Complex { ahead: Ahead::No });
    // A binary search with a branch in place of the move.
    let text =
        "a: lea rsi,[rax*4]; cmp [rcx+rax*4-4],edi; jae b; add rcx,rsi; b: shr rax,1; jne a; ret";
    assert_eq!(inner(text, 1).0, Class::Complex { ahead: Ahead::No });
    // A hash whose loop has two paths, neither of which changes the key's place otherwise.
    let text = "a: mov eax,[rsi]; imul eax,eax,77; and eax,1023; add rdx,[rdi+rax*8]; test dl,1; je b; inc r9; \
        b: add rsi,4; cmp rsi,r8; jne a; ret";
    assert!(inner(text, 3).0.is_computable_ahead(), "{:?}", inner(text, 3));
}

#[test]
fn indirect_loads() {
    let text = "a: mov eax,[rsi+rcx*4]; add rdx,[rdi+rax*8]; inc rcx; cmp rcx,r8; jne a; ret";
    let class = Class::Indirect { of: 0, scale: 8, inner: stride(4) };
    assert_eq!(inner(text, 1), (class, vec![0, 2]));
    // An array of pointers, to a member.
    let text = "a: mov rax,[rsi]; add rsi,8; add rdx,[rax+40]; cmp rsi,r8; jne a; ret";
    let class = Class::Indirect { of: 0, scale: 1, inner: stride(8) };
    assert_eq!(inner(text, 2), (class, vec![0, 1]));
    // The index of the iteration before.
    let text = "a: add rdx,[rdi+rax*8]; mov eax,[rsi]; add rsi,4; cmp rsi,r8; jne a; ret";
    let class = Class::Indirect { of: 1, scale: 8, inner: stride(4) };
    assert_eq!(inner(text, 0), (class, vec![1, 2]));
    // p += step[i]
    let text = "a: add rdx,[rdi]; mov eax,[rsi]; add rdi,rax; add rsi,4; cmp rsi,r8; jne a; ret";
    assert_eq!(inner(text, 0).0, Class::IndirectDelta { of: 1 });
    // table[a[i] ^ b[i]]
    let text = "a: mov eax,[rsi]; xor eax,[r9]; add rdx,[rdi+rax*8]; add rsi,4; add r9,4; jmp a";
    assert_eq!(inner(text, 2), (Class::Complex { ahead: Ahead::Directly }, vec![0, 1, 3, 4]));
}

/// Random numbers that index a table: the next needs all before, unless n steps of it are one (x → a x + c).
#[test]
fn generators_run_one_step_after_the_other() {
    let ahead = |text: &str, number: usize| {
        let level = found(text, number).levels.remove(0);
        assert_eq!(level.class.kind(), Kind::Complex, "{:?}", level.class);
        (level.class.ahead(), level.slice.len(), level.has_loops)
    };
    // xorshift64, then a mask.
    let xorshift = "mov rax,rcx; shl rax,13; xor rcx,rax; mov rax,rcx; shr rax,7; xor rcx,rax; mov rax,rcx; \
        shl rax,17; xor rcx,rax; mov rax,rcx; and eax,0xfffff; add rdx,[rdi+rax*8]; dec r8; jne a; ret";
    assert_eq!(ahead(&format!("a: {xorshift}"), 11), (Ahead::ByCopy, 11, false));
    // The state is a word of memory.
    let text = "a: mov rax,[rbp-8]; mov rcx,rax; shl rcx,13; xor rax,rcx; mov [rbp-8],rax; and eax,0xfffff; \
        add rdx,[rdi+rax*8]; dec r8; jne a; ret";
    assert_eq!(ahead(text, 6).0, Ahead::ByCopy);
    let congruential = "a: imul ecx,ecx,1664525; add ecx,1013904223; mov eax,ecx; shr eax,12; \
        add rdx,[rdi+rax*8]; dec r8; jne a; ret";
    assert_eq!(ahead(congruential, 4).0, Ahead::Directly);
    // Triangular numbers: a sum of all steps before.
    let text = "a: add rcx,rsi; inc rsi; mov eax,ecx; and eax,0xfffff; add rdx,[rdi+rax*8]; dec r8; jne a; ret";
    assert_eq!(ahead(text, 4).0, Ahead::ByCopy);
    // A loop of its own for each step.
    let text = "a: mov esi,8; b: mov rax,rcx; shl rax,13; xor rcx,rax; dec esi; jne b; mov eax,ecx; \
        and eax,0xfffff; add rdx,[rdi+rax*8]; dec r8; jne a; ret";
    let (ahead, _, has_loops) = ahead(text, 8);
    assert_eq!((ahead, has_loops), (Ahead::ByCopy, true));
    // An index that a table holds, at a place that a generator chooses.
    let text = format!(
        "a: {}",
        xorshift.replace("add rdx,[rdi+rax*8]", "mov eax,[rsi+rax*4]; add rdx,[rdi+rax*8]")
    );
    let level = found(&text, 12).levels.remove(0);
    assert_eq!((level.class.kind(), level.class.ahead()), (Kind::Indirect, Ahead::ByCopy));
}

/// As `gcc -O0`: variables are words of the stack.
#[test]
fn spilled_variables_are_followed() {
    let text = "a: mov eax,[rbp-20]; cdqe; lea rdx,[rax*8]; mov rax,[rbp-40]; add rax,rdx; \
        mov rax,[rax]; add [rbp-8],rax; add dword ptr [rbp-20],1; mov eax,[rbp-20]; \
        cmp eax,[rbp-44]; jl a; ret";
    assert_eq!(inner(text, 5), (Class::Stride(8), vec![0, 1, 2, 3, 4, 7]));
    assert_eq!(inner(text, 0).0, Class::Constant);
    let text = "a: mov rax,[rbp-8]; mov rdx,[rax+8]; mov rax,[rbp-8]; mov rax,[rax]; \
        mov [rbp-8],rax; cmp qword ptr [rbp-8],0; jne a; ret";
    assert_eq!(inner(text, 3).0, Class::Chase { scale: 1, offset: 0 });
    assert_eq!(inner(text, 1).0, Class::OffsetOfChase { of: 3, offset: 8 });
}

#[test]
fn calls_lose_what_they_may_change() {
    let text = "a: call b; add rdx,[rdi+rax*8]; dec ebx; jne a; b: ret";
    assert_eq!(inner(text, 1).0, Class::Irregular);
    let text = "a: call b; add r12,[rbx]; add rbx,8; cmp rbx,rbp; jne a; ret; b: ret";
    assert_eq!(inner(text, 1).0, Class::Stride(8));
}

/// Two of three ways through the loop advance by 8.
#[test]
fn paths_vote() {
    let text = "a: add rdx,[rdi]; test edx,1; je c; test edx,2; je c; add rdi,64; jmp d; \
        c: add rdi,8; d: cmp rdi,rsi; jne a; ret";
    let Level { class, paths, agree, .. } = found(text, 0).levels.remove(0);
    assert_eq!((class, paths, agree), (Class::Stride(8), 3, 2));
}

/// Rows of a table, as the outer loop sees them.
#[test]
fn outer_loops() {
    let text = "a: xor eax,eax; b: add rdx,[rdi+rax*8]; inc eax; cmp eax,r8d; jne b; \
        add rdi,4096; dec ecx; jne a; ret";
    let classes: Vec<_> = found(text, 1).levels.into_iter().map(|l| l.class).collect();
    assert_eq!(classes, [Class::Stride(8), Class::Stride(4096)]);
    // The inner loop moves the pointer itself, by as much each time.
    let text = "a: mov eax,r8d; b: add rdx,[rdi]; add rdi,8; dec eax; jne b; dec ecx; jne a; ret";
    let classes: Vec<_> = found(text, 1).levels.into_iter().map(|l| l.class).collect();
    assert_eq!(classes, [Class::Stride(8), Class::UnknownStride]);
}

/// Code that no compiler makes ends in time and memory: long chains of masks, pointers and spilled words.
#[test]
fn long_dependencies_are_cut() {
    let many = |what: &str| what.repeat(3000);
    let text = format!("a: {} add rdx,[rdi+rax]; jmp a", many("and eax,0xff; "));
    assert_ne!(found(&text, 3000).levels[0].class, Class::Constant);
    let text = format!("a: mov rax,[rsp]; {} jmp a", many("mov rax,[rax]; "));
    assert_eq!(found(&text, 3000).levels.len(), 1);
    let words: String = (0..600).map(|n| format!("inc qword ptr [rsp+{}]; ", 8 * n)).collect();
    let text = format!("a: {words} mov rax,[rsp+64]; add rdx,[rdi+rax]; jmp a");
    assert_eq!(found(&text, 601).levels[0].class, Class::Irregular);
}

/// Pattern of a load of `../shared/simlbr/kernels`; `None`, with a message, where that is absent.
fn kernel(load: u64) -> Option<Access> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/simlbr/kernels");
    let Ok(data) = std::fs::read(&path) else {
        eprintln!("skipped: ../shared/simlbr/kernels is absent");
        return None;
    };
    let (_, range) = function_around(&data, load).unwrap();
    let code = read_ranges(&data, &[range]).unwrap().remove(0);
    let image = Image::new(&data[..]).unwrap();
    let (flow, instructions) = decoded_flow(&code.1, code.0, &[], &image);
    classify(&Function::new(&flow, &instructions), load)
}

/// Classes and slices of simlbr/README.md.
#[test]
fn kernels_with_known_patterns() {
    let indirect = |of, inner| Class::Indirect { of, scale: 8, inner };
    let hash: &'static [u64] = &[0x40_1ab0, 0x40_1ab3, 0x40_1ab6];
    type Expected = (u64, Class<u64>, Option<&'static [u64]>);
    let expected: [Expected; 9] = [
        (0x40_1b4a, indirect(0x40_1b48, stride(4)), Some(&[0x40_1b48, 0x40_1c8a])),
        (0x40_1ce0, Class::Stride(65_536), None),
        (0x40_1a56, indirect(0x40_1a50, stride(4)), Some(&[0x40_1a50, 0x40_1a52])),
        (0x40_1aba, Class::Complex { ahead: Ahead::Directly }, Some(hash)),
        (0x40_1a80, Class::OffsetOfChase { of: 0x40_1a84, offset: 24 }, None),
        (0x40_1a84, Class::Chase { scale: 1, offset: 0 }, None),
        (0x40_1a1f, Class::Stride(4096), None),
        (0x40_19d0, Class::Stride(8), None),
        (0x40_19a0, Class::Constant, None),
    ];
    for (load, class, slice) in expected {
        let Some(found) = kernel(load) else { return };
        let level = found.innermost().unwrap();
        assert_eq!(level.class, class, "{load:#x}");
        if let Some(slice) = slice {
            assert_eq!(level.slice, slice, "{load:#x}");
        }
    }
    // Across the outer loop, the loads of the nested ones are indirect.
    for (load, index, step) in [(0x40_1ce0, 0x40_1cc8, 65_536), (0x40_1b06, 0x40_1af0, 512)] {
        let found = kernel(load).unwrap();
        let classes: Vec<_> = found.levels.iter().map(|l| l.class.clone()).collect();
        assert_eq!(classes, [Class::Stride(step), indirect(index, stride(4))]);
    }
    let wraps = kernel(0x40_1a1f).unwrap().levels[0].wraps;
    assert_eq!(wraps, Some(8 << 20), "8 MiB");
}

/// A loop that is too large is not dropped: the one around it is not the innermost.
#[test]
fn loops_that_are_not_looked_at_stay() {
    let blocks: String =
        (0..1100).map(|n| format!("test al,{}; je at{n}; nop; at{n}: ", n % 100 + 1)).collect();
    let text = format!(
        "outer: xor edx,edx; inner: mov eax,[rsi+rdx*4]; inc rdx; {blocks} cmp rdx,rdi; jne inner; add rsi,64; \
         dec rcx; jne outer; ret"
    );
    let access = found(&text, 1);
    assert_eq!(access.levels.len(), 2);
    let inner = &access.levels[0];
    assert_eq!(inner.class, Class::Irregular);
    assert!(inner.words().contains("blocks, more than 1000"), "{}", inner.words());
}

/// The leaf of a descent: in the outer loop its address is computable ahead in principle, by another descent.
#[test]
fn what_a_loop_within_chases_to_is_named() {
    let text = "a: mov rdx,[rsi]; mov rax,rdi; mov ecx,5; b: mov rax,[rax+rdx*8]; dec ecx; jne b; add rbx,[rax]; \
                add rsi,8; cmp rsi,r8; jne a; ret";
    let code = assemble(text, Syntax::Intel).unwrap();
    let within = decoded_flow(&code, 0, &[], &()).1[3].ip();
    let level = |number: usize| found(text, number).levels.remove(0);
    assert_eq!(level(6).after_chase, Some(within));
    assert_eq!((level(0).after_chase, level(3).after_chase), (None, None));
}
