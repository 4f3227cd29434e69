/* Reverses a linked list in place. */
#include "driver.h"

struct node { struct node *next; long value; };
static struct node nodes[700];

KERNEL struct node *kernel(struct node *p) {
    struct node *done = 0;
    while (p) {
        struct node *next = p->next;
        p->next = done;
        done = p;
        p = next;
    }
    return done;
}

static void run(void) {
    for (int i = 0; i < 699; i++) nodes[i].next = i < 698 ? &nodes[i + 1] : 0;
    sink = (u64)kernel(nodes);
}
