/* Threads that contend for cache lines or locks, known by construction: contention KIND [normal|control] [TIMES]
   Two threads, each with work of its own, in functions k_*; as control the same work on lines, and with locks, of their own.
   Prints the processor time of all threads. gcc -O2 -pthread */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t u64;
#define KERNEL __attribute__((noipa)) void
#define APART 256 /* bytes: more than a line and its neighbour that prefetchers fetch, too */
enum { THREADS = 2, TABLE = 1 << 12, RING = 64, NODES = 1 << 20 };

struct lock { pthread_mutex_t mutex; volatile u64 value; };
struct queue { _Alignas(128) atomic_ulong head; _Alignas(128) atomic_ulong tail; _Alignas(128) u64 slots[RING]; };
struct node { struct node *next; u64 rest[7]; };

static _Alignas(4096) unsigned char lines[THREADS * APART], flags[THREADS * APART];
static struct lock locks[THREADS * APART / sizeof(struct lock) + THREADS] __attribute__((aligned(256)));
static struct queue queue;
static u64 table[TABLE];
static char *heap;
static struct node *rings[THREADS];
static int control;
static const char *kind;
static u64 count;

/* A word of a thread: one after the other, or apart. */
static void *own(unsigned char *all, u64 thread, int apart) { return all + thread * (apart ? APART : 8); }

/* A counter in memory. */
KERNEL k_false_sharing(volatile u64 *own, u64 n) { for (u64 i = 0; i < n; i++) *own += 1; }
/* The same beside work in registers: a part of the time. */
KERNEL k_some_sharing(volatile u64 *own, u64 n) {
    u64 x = n;
    for (u64 i = 0; i < n; i++) { for (int k = 0; k < 12; k++) x = x * 0x9e3779b97f4a7c15u + 1; *own += x & 1; }
}
/* Sums of a thread in an array of structures on the heap. */
struct sums { u64 count, sum; };
KERNEL k_heap(volatile struct sums *own, u64 n) { for (u64 i = 0; i < n; i++) { own->count += 1; own->sum += i ^ (i >> 3); } }
KERNEL k_atomic(atomic_ulong *counter, u64 n) { for (u64 i = 0; i < n; i++) atomic_fetch_add(counter, 1); }
/* A spin lock around a counter, which waits without system calls. */
KERNEL k_spin(atomic_int *lock, volatile u64 *value, u64 n) {
    for (u64 i = 0; i < n; i++) {
        while (atomic_exchange_explicit(lock, 1, memory_order_acquire))
            while (atomic_load_explicit(lock, memory_order_relaxed)) __builtin_ia32_pause();
        *value += 1;
        atomic_store_explicit(lock, 0, memory_order_release);
    }
}
/* A mutex around a counter. */
KERNEL k_convoy(struct lock *of, u64 n) {
    for (u64 i = 0; i < n; i++) { pthread_mutex_lock(&of->mutex); of->value += 1; pthread_mutex_unlock(&of->mutex); }
}
/* A ring of one producer and one consumer, without locked instructions. */
KERNEL k_produce(struct queue *of, u64 n) {
    for (u64 i = 0; i < n; i++) {
        while (i - atomic_load_explicit(&of->tail, memory_order_acquire) >= RING) __builtin_ia32_pause();
        of->slots[i % RING] = i;
        atomic_store_explicit(&of->head, i + 1, memory_order_release);
    }
}
KERNEL k_consume(struct queue *of, volatile u64 *sum, u64 n) {
    for (u64 i = 0; i < n; i++) {
        while (atomic_load_explicit(&of->head, memory_order_acquire) == i) __builtin_ia32_pause();
        *sum += of->slots[i % RING];
        atomic_store_explicit(&of->tail, i + 1, memory_order_release);
    }
}
/* A table that both read, with a sum of its own. */
KERNEL k_read(const u64 *all, volatile u64 *own, u64 n) { for (u64 i = 0; i < n; i++) *own += all[(i * 0x9e3779b97f4a7c15u) >> 52]; }
/* Dependent loads from memory that nobody else has. */
KERNEL k_chase(struct node *at, volatile u64 *own, u64 n) { for (u64 i = 0; i < n; i++) at = at->next; *own = (u64)at; }

static struct node *ring(u64 seed) {
    struct node *all = aligned_alloc(64, NODES * sizeof *all);
    for (u64 i = 0; i < NODES; i++) all[i].next = &all[i];
    for (u64 i = NODES - 1; i > 0; i--) {
        seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17;
        struct node *t = all[i].next; all[i].next = all[seed % i].next; all[seed % i].next = t;
    }
    return all;
}

static void *work(void *number) {
    u64 t = (u64)number, m = count, mine = control ? t : 0;
    volatile u64 *word = own(lines, t, control), *alone = own(lines, t, 1);
#define IS(name) (!strcmp(kind, name))
    if (IS("false_sharing")) k_false_sharing(word, 350 * m);
    if (IS("some_sharing")) k_some_sharing(word, 30 * m);
    if (IS("heap_sums")) k_heap((void *)(heap + t * (control ? APART : sizeof(struct sums))), 200 * m);
    if (IS("shared_atomic")) k_atomic(own(lines, mine, 1), 50 * m);
    if (IS("spin")) k_spin(own(flags, mine, 1), own(lines, mine, 1), 20 * m);
    if (IS("convoy")) k_convoy((void *)((char *)locks + mine * APART), 12 * m);
    if (IS("queue")) { if (t) k_consume(&queue, alone, 20 * m); else k_produce(&queue, 20 * m); }
    if (IS("padded")) k_false_sharing(alone, 350 * m);
    if (IS("padded_atomic")) k_atomic((void *)alone, 200 * m);
    if (IS("own_locks")) k_convoy((void *)((char *)locks + t * APART), 60 * m);
    if (IS("read_shared")) k_read(table, alone, 300 * m);
    if (IS("chase")) k_chase(rings[t], alone, 12 * m);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    kind = argv[1];
    control = argc > 2 && !strcmp(argv[2], "control");
    count = 1000000 * (argc > 3 ? atof(argv[3]) : 1);
    heap = aligned_alloc(64, THREADS * APART);
    memset(heap, 0, THREADS * APART);
    for (u64 t = 0; t < THREADS; t++) {
        pthread_mutex_init((void *)((char *)locks + t * APART), 0);
        if (IS("chase")) rings[t] = ring(88172645463325252u + t);
    }
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    pthread_t all[THREADS];
    for (u64 t = 0; t < THREADS; t++) pthread_create(&all[t], 0, work, (void *)t);
    for (u64 t = 0; t < THREADS; t++) pthread_join(all[t], 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    printf("threads %.4f\n", b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) * 1e-9);
    return 0;
}
