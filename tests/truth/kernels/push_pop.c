/* Pushes three registers and pops them in another order. */
#include "driver.h"

KERNEL u64 kernel(u64 x, u64 n) {
    u64 y = 3, z = 5;
    __asm__ volatile("1:\n\tpush %0\n\tpush %1\n\tpush %2\n\tadd $1, %0\n\tpop %0\n\tpop %2\n\tpop %1\n\tdec %3\n\tjnz 1b"
                     : "+r"(x), "+r"(y), "+r"(z), "+r"(n)
                     :
                     : "memory", "cc");
    return x ^ y ^ z;
}

static void run(void) {
    sink = kernel(1, N);
}
