/* What every kernel's file has in common: a start on a stack of fixed address, so that a run under valgrind and a
   native one touch the same addresses (the programs are static and not position independent, and allocate nothing). */
#ifdef __clang__
#define KERNEL __attribute__((noinline))
#else
#define KERNEL __attribute__((noipa))
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

/* Iterations of the hot loop where the kernel has a plain count; volatile, so that no compiler knows it. */
#ifndef COUNT
#define COUNT 600
#endif
static volatile int N = COUNT;
static volatile u64 sink;

/* Pseudo-random numbers (Marsaglia's xorshift, 64 bits), the same in every run. */
static u64 random_state = 88172645463325252ul;
static inline u64 next(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Prepares data and calls the kernel. */
__attribute__((noinline)) static void run(void);
__attribute__((noinline, used)) static void run_it(void) { run(); }

static char stack[1 << 16] __attribute__((aligned(4096)));

int main(void) {
    __asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\tcall run_it\n\tmovq %%rbx, %%rsp"
                     :
                     : "r"(stack + sizeof stack - 64)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    return 0;
}
