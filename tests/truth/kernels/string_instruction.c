/* lodsb and stosb in a loop. */
#include "driver.h"

static u8 from[1024], to[1024];

KERNEL void kernel(u8 *to, u8 *from, u64 n) {
    __asm__ volatile("1:\n\tlodsb\n\txor $32, %%al\n\tstosb\n\tdec %2\n\tjnz 1b"
                     : "+D"(to), "+S"(from), "+c"(n)
                     :
                     : "rax", "memory", "cc");
}

static void run(void) {
    kernel(to, from, N);
}
