/* A generator whose three words of state are global variables. */
#include "../kernels/driver.h"

static u32 a = 123, b = 456, c = 789;
static u32 out[1024];

KERNEL void kernel(u32 *out, int n) {
    for (int i = 0; i < n; i++) {
        a = ((a & 0xfffffffe) << 12) ^ (((a << 13) ^ a) >> 19);
        b = ((b & 0xfffffff8) << 4) ^ (((b << 2) ^ b) >> 25);
        c = ((c & 0xfffffff0) << 17) ^ (((c << 3) ^ c) >> 11);
        out[i] = a ^ b ^ c;
    }
}

static void run(void) { kernel(out, N); }
