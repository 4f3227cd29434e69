/* Programs of flat code, whose bottleneck is known by construction: flat KIND [normal|control] [TIMES]
   One function calls COUNT others in turn; built with -Dflat_alu, -Dflat_chain, -Dflat_chase or -Dflat_small, which is
   KIND. A control does the same work without the bottleneck. Deterministic; prints the seconds of processor time. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef uint64_t u64;
#define FOUR " add $1,%rax\n xor $2,%rcx\n add $3,%rdx\n xor $4,%rsi\n"
#define FIVE " add $5,%r8\n xor $6,%r9\n add $7,%r10\n xor $8,%r11\n lea 9(%rdi),%rdx\n"
#define BRANCH " test $1,%dil\n jz 1f\n add $1,%rcx\n1:\n"
#define MULTIPLY " imul %rax,%rax\n"
#define MULTIPLIES MULTIPLY MULTIPLY MULTIPLY MULTIPLY MULTIPLY
#ifdef flat_alu
#define BODY FOUR FIVE FOUR FIVE " add $1,%rax\n"
#elif defined flat_chain
#define BODY MULTIPLIES MULTIPLIES MULTIPLIES MULTIPLIES
#elif defined flat_chase
#define BODY " mov (%rdi),%rdi\n" FOUR FIVE
#else
#define BODY FOUR FIVE FOUR BRANCH FIVE FOUR FIVE
#define COUNT "200"
#endif
#ifndef COUNT
#define COUNT "6000"
#endif

__asm__(".altmacro\n"
    ".macro function n\n.p2align 6\n.type flat\\n,@function\nflat\\n:\n" BODY " ret\n.size flat\\n,.-flat\\n\n.endm\n"
    ".macro go n\n call flat\\n\n.endm\n"
    ".macro driver name count\n.type \\name,@function\n\\name:\n.set i,0\n.rept \\count\n go %i\n.set i,i+1\n.endr\n"
    " ret\n.size \\name,.-\\name\n.endm\n"
    ".set i,0\n.rept " COUNT "\n function %i\n.set i,i+1\n.endr\n"
    " driver drive_all " COUNT "\n driver drive_few 60\n.noaltmacro\n");
extern char drive_all[], drive_few[];

/* A ring of all lines in random order: Sattolo's. */
static void *ring(u64 bytes) {
    struct node { struct node *next; u64 rest[7]; } *all;
    u64 n = bytes / 64, state = 88172645463325252u;
    all = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(all, bytes, MADV_HUGEPAGE);
    for (u64 i = 0; i < n; i++) all[i].next = &all[i];
    for (u64 i = n - 1; i > 0; i--) {
        state ^= state << 13; state ^= state >> 7; state ^= state << 17;
        u64 k = state % i; struct node *t = all[i].next; all[i].next = all[k].next; all[k].next = t;
    }
    return all;
}
static __attribute__((noipa)) u64 run(void *at, u64 n, void *data) {
    u64 s = 3;
    for (u64 i = 0; i < n; i++)
        __asm__ volatile("call *%2" : "+a"(s), "+D"(data) : "r"(at) : "memory", "cc", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11");
    return s;
}
static double spent(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }

int main(int argc, char **argv) {
    int c = argc > 2 && !strcmp(argv[2], "control");
    double times = argc > 3 ? atof(argv[3]) : 1;
    u64 n = 30000 * times;
    void *at = drive_all, *data = 0;
#ifdef flat_alu
    if (c) { at = drive_few; n *= 100; }
#elif defined flat_chain
    n /= 4;
#elif defined flat_chase
    data = ring(c ? 16384 : 256ul << 20); n /= 40;
#else
    n *= 40;
#endif
    double a = spent(); u64 s = run(at, n, data);
    printf("drive %.4f\n", spent() - a);
    fprintf(stderr, "%lx\n", s);
    return 0;
}
