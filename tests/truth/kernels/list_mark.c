/* A walk over a linked list that counts each visit in the node. */
#include "driver.h"

struct node { struct node *next; long visits; };
static struct node nodes[700];

KERNEL void kernel(struct node *p) {
    for (; p; p = p->next) p->visits++;
}

static void run(void) {
    for (int i = 0; i < 699; i++) nodes[i * 17 % 699].next = i < 698 ? &nodes[(i + 1) * 17 % 699] : 0;
    kernel(nodes);
}
