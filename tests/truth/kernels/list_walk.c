/* The sum over a linked list. */
#include "driver.h"

struct node { struct node *next; long value; };
static struct node nodes[700];

KERNEL long kernel(struct node *p) {
    long sum = 0;
    for (; p; p = p->next) sum += p->value;
    return sum;
}

static void run(void) {
    for (int i = 0; i < 699; i++) nodes[i * 17 % 699].next = i < 698 ? &nodes[(i + 1) * 17 % 699] : 0;
    sink = kernel(nodes);
}
