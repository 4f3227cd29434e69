# Loops whose cycles are known: what the native timer itself is checked by. rdi is the number of iterations.
.intel_syntax noprefix
.text
.globl known_adds, known_multiplies, known_loads
.p2align 6
known_adds:             # four dependent additions: 4 cycles
    mov eax,1
    mov edx,1
.p2align 6
1:  add rax,rdx
    add rax,rdx
    add rax,rdx
    add rax,rdx
    dec rdi
    jnz 1b
    ret
.p2align 6
known_multiplies:       # four dependent multiplications of latency 3 (AMD and Intel since Nehalem): 12 cycles
    mov eax,3
.p2align 6
1:  imul rax,rax
    imul rax,rax
    imul rax,rax
    imul rax,rax
    dec rdi
    jnz 1b
    ret
.p2align 6
known_loads:            # a walk along a list (`list`), 4 dependent loads: 4 times 4 (AMD) or 5 (Intel since Ice Lake)
.p2align 6
1:  mov rsi,[rsi]
    mov rsi,[rsi]
    mov rsi,[rsi]
    mov rsi,[rsi]
    dec rdi
    jnz 1b
    ret
.section .note.GNU-stack,"",@progbits
