/* A linear feedback shift register (Galois), one bit a step. */
#include "../kernels/driver.h"

KERNEL u32 kernel(u32 s, int n) {
    for (int i = 0; i < n; i++) s = (s >> 1) ^ (-(s & 1) & 0xedb88320u);
    return s;
}

static void run(void) { sink = kernel((u32)next() | 1, N); }
