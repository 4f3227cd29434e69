/* Two 16-bit halves are stored, the word is loaded. */
#include "../kernels/driver.h"

static union { u16 half[2]; volatile u32 word; } u;

KERNEL u32 kernel(volatile u16 *half, volatile u32 *word, u32 x, int n) {
    for (int i = 0; i < n; i++) {
        half[0] = (u16)x;
        half[1] = (u16)(x >> 16);
        x = *word + 77;
    }
    return x;
}

static void run(void) { sink = kernel(u.half, &u.word, (u32)next(), N); }
