/* gzip's updcrc: a CRC-32 by table, byte by byte. */
#include "driver.h"

static u32 table[256];
static u8 text[1024];

KERNEL u32 kernel(u8 *s, u32 n, u32 c) {
    do c = table[((int)c ^ (*s++)) & 0xff] ^ (c >> 8);
    while (--n);
    return c;
}

static void run(void) {
    for (u32 i = 0; i < 256; i++) {
        u32 c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        table[i] = c;
    }
    for (int i = 0; i < 1024; i++) text[i] = (u8)next();
    sink = kernel(text, N, 0xffffffffu);
}
