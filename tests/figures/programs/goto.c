// A stack machine with computed gotos, and a hash of its results.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { PUSH, ADD, SUB, MUL, DUP, SWAP, DROP, JNZ, DEC, LOAD, STORE, CALL, RET, HALT };
static long mem[256];
__attribute__((noinline)) static long run(const long *code) {
    static void *const to[] = {&&push, &&add, &&sub, &&mul, &&dup, &&swap, &&drop, &&jnz, &&dec, &&load, &&store, &&call, &&ret, &&halt};
    long stack[256], *sp = stack; const long *ret[64]; int depth = 0; const long *pc = code;
#define NEXT goto *to[*pc++]
    NEXT;
push: *sp++ = *pc++; NEXT;
add: sp[-2] += sp[-1]; sp--; NEXT;
sub: sp[-2] -= sp[-1]; sp--; NEXT;
mul: sp[-2] = (long)((unsigned long)sp[-2] * (unsigned long)sp[-1]); sp--; NEXT;
dup: sp[0] = sp[-1]; sp++; NEXT;
swap: { long t = sp[-1]; sp[-1] = sp[-2]; sp[-2] = t; } NEXT;
drop: sp--; NEXT;
jnz: if (*--sp) pc = code + *pc; else pc++; NEXT;
dec: sp[-1]--; NEXT;
load: *sp++ = mem[*pc++ & 255]; NEXT;
store: mem[*pc++ & 255] = *--sp; NEXT;
call: if (depth == 64) { fprintf(stderr, "deep\n"); exit(2); } ret[depth++] = pc + 1; pc = code + *pc; NEXT;
ret: pc = ret[--depth]; NEXT;
halt: return sp[-1];
}
int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 100000;
    long code[] = { PUSH, n, STORE, 0, PUSH, 1, STORE, 1,
      /*8*/ LOAD, 1, PUSH, 3, MUL, LOAD, 0, ADD, CALL, 30, STORE, 1, LOAD, 0, DEC, DUP, STORE, 0, JNZ, 8, LOAD, 1, /*30*/
      DUP, PUSH, 7, MUL, SWAP, SUB, RET };
    code[28] = LOAD;  code[29] = 1;
    // jump over the subroutine
    long full[64]; memset(full, 0, sizeof full); memcpy(full, code, sizeof code);
    full[17] = 40; memcpy(full + 40, code + 30, 7 * sizeof(long)); full[30] = HALT;
    for (int i = 0; i < 3; i++) printf("%ld\n", run(full));
    return 0;
}
