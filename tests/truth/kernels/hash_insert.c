/* Chains of a hash table, as deflate keeps them: head and previous. */
/* class: data-dependent */
#include "driver.h"

static u16 head[256], previous[1024];
static u8 text[1024];

KERNEL void kernel(u16 *head, u16 *previous, u8 *text, int n) {
    for (int i = 0; i < n; i++) {
        u32 hash = (text[i] * 5 + text[i + 1]) & 255;
        previous[i] = head[hash];
        head[hash] = (u16)i;
    }
}

static void run(void) {
    for (int i = 0; i < 1024; i++) text[i] = (u8)(next() & 7);
    kernel(head, previous, text, N);
}
