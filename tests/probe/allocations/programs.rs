//! Programs whose loads read memory of known sites: each writes the lines of those to the file of argument 1.

/// A list, a hash table, an array that grows, nodes of two sites of the same size, mapped, aligned and static memory.
pub const C: &str = r#"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
struct node { struct node *next; uint64_t key; };
static uint64_t fixed[4096];
static int lines[9];
#define HERE(n) (lines[n] = __LINE__)
__attribute__((noipa)) struct node *list(long n) {
    struct node *all = 0;
    for (long i = 0; i < n; i++) {
        struct node *one = malloc(sizeof *one); HERE(0);
        *one = (struct node){all, i};
        all = one;
    }
    return all;
}
__attribute__((noipa)) uint64_t *table(long n) { uint64_t *all = calloc(n, 8); HERE(1); return all; }
__attribute__((noipa)) uint64_t *grown(long n) {
    uint64_t *all = malloc(64);
    for (long have = 8; have < n; have *= 2) { all = realloc(all, have * 16); HERE(2); }
    for (long i = 0; i < n; i++) all[i] = i;
    return all;
}
__attribute__((noipa)) struct node *left(void) { struct node *one = malloc(48); HERE(3); return one; }
__attribute__((noipa)) struct node *right(void) { struct node *one = malloc(48); HERE(4); return one; }
__attribute__((noipa)) uint64_t walk(struct node *p, long n) { uint64_t s = 0; struct node *q = p; for (long i = 0; i < n; i++) { if (!q) q = p; s += q->key; q = q->next; } return s; }
__attribute__((noipa)) uint64_t look(uint64_t *a, uint64_t mask, long n) { uint64_t s = 0; for (uint64_t i = 0; i < n; i++) s += a[(i * 0xff51afd7ed558ccdu >> 20) & mask]; return s; }
__attribute__((noipa)) uint64_t scan(uint64_t *a, uint64_t mask, long n) { uint64_t s = 0; for (uint64_t i = 0; i < n; i++) s += a[i & mask]; return s; }
__attribute__((noipa)) uint64_t ring(struct node *p, long n) { uint64_t s = 0; for (long i = 0; i < n; i++) { s += p->key; p = p->next; } return s; }
__attribute__((noipa)) uint64_t map(uint64_t *a, uint64_t mask, long n) { uint64_t s = 0; for (uint64_t i = 0; i < n; i++) s += a[i & mask]; return s; }
__attribute__((noipa)) uint64_t aligned(uint64_t *a, uint64_t mask, long n) { uint64_t s = 0; for (uint64_t i = 0; i < n; i++) s += a[i & mask]; return s; }
__attribute__((noipa)) uint64_t still(uint64_t *a, uint64_t mask, long n) { uint64_t s = 0; for (uint64_t i = 0; i < n; i++) s += a[i & mask]; return s; }
int main(int count, char **arguments) {
    FILE *out = fopen(arguments[1], "w");
    struct node *nodes = list(NODES);
    uint64_t *hash = table(1 << 16), *array = grown(1 << 16), *page, *place;
    struct node *first = 0;
    for (int i = 0; i < 1000; i++) {
        struct node *one = i % 2 ? left() : right();
        if (!first) first = one->next = one;
        else { one->next = first->next; first->next = one; }
        one->key = i;
    }
    page = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); HERE(5);
    if (posix_memalign((void **)&place, 4096, 1 << 16)) return 1; HERE(6);
    uint64_t all = walk(nodes, 30000000) + look(hash, 0xffff, 30000000) + scan(array, 0xffff, 30000000) + ring(first, 30000000)
        + map(page, 0x1fff, 30000000) + aligned(place, 0x1fff, 30000000) + still(fixed, 0xfff, 30000000);
    for (int i = 0; i < 7; i++) fprintf(out, "%d\n", lines[i]);
    return all == 1;
}
"#;

/// Memory of `operator new`, called by the program and by the library for it; and `malloc` at the very end of a stack,
/// above which nothing is mapped.
pub const CPP: &str = r#"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <unordered_map>
#include <vector>
static int lines[9];
#define HERE(n) (lines[n] = __LINE__)
struct node { node *next; uint64_t key; };
__attribute__((noipa)) void fill(std::vector<uint64_t> &all, long n) { for (long i = 0; i < n; i++) { all.push_back(i); HERE(0); } }
__attribute__((noipa)) node *list(long n) { node *all = nullptr; for (long i = 0; i < n; i++) { all = new node{all, uint64_t(i)}; HERE(1); } return all; }
__attribute__((noipa)) uint64_t scan(const uint64_t *a, uint64_t mask, long n) { uint64_t s = 0; for (uint64_t i = 0; i < n; i++) s += a[i & mask]; return s; }
__attribute__((noipa)) uint64_t walk(node *p, long n) { uint64_t s = 0; node *q = p; for (long i = 0; i < n; i++) { if (!q) q = p; s += q->key; q = q->next; } return s; }
__attribute__((noipa)) uint64_t whole(const uint64_t *a, uint64_t mask, long n) { uint64_t s = 0; for (uint64_t i = 0; i < n; i++) s += a[i & mask]; return s; }
__attribute__((noipa)) uint64_t text(const char *a, uint64_t mask, long n) { uint64_t s = 0; for (uint64_t i = 0; i < n; i++) s += a[i & mask]; return s; }
__attribute__((noipa)) uint64_t found(std::unordered_map<uint64_t, uint64_t> &m, long n) { uint64_t s = 0; for (uint64_t i = 0; i < n; i++) s += m.find(i & 4095)->second; return s; }
/* malloc is called with the stack pointer at every place below the end of a stack. */
static ucontext_t outer, inner; static long room; static void *volatile got;
static void top(void) { char *volatile p = (char *)__builtin_alloca(room); (void)p; got = malloc(8); }
int main(int count, char **arguments) {
    FILE *out = fopen(arguments[1], "w");
    std::vector<uint64_t> grown; fill(grown, 1 << 16);
    node *nodes = list(100000);
    std::vector<uint64_t> once(1 << 14); HERE(2);
    std::string word(1 << 14, 'x'); HERE(3);
    std::unordered_map<uint64_t, uint64_t> map;
    for (int i = 0; i < 4096; i++) { map[i] = i; HERE(4); }
    char *stack = (char *)mmap(nullptr, 3 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(stack + (2 << 16), 1 << 16);
    for (long i = 0; i < 64; i++) {
        room = 1 + i * 16;
        getcontext(&inner); inner.uc_stack = {stack, 0, 2 << 16}; inner.uc_link = &outer;
        makecontext(&inner, top, 0); swapcontext(&outer, &inner);
        if (!got) return 1;
    }
    uint64_t all = scan(grown.data(), 0xffff, 30000000) + walk(nodes, 30000000) + whole(once.data(), 0x3fff, 30000000)
        + text(word.data(), 0x3fff, 30000000) + found(map, 30000000);
    for (int i = 0; i < 5; i++) fprintf(out, "%d\n", lines[i]);
    return all == 1;
}
"#;

/// Threads with lists of their own; with argument 2, a forked child that allocates the addresses of its parent.
pub const TASKS: &str = r#"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
struct node { struct node *next; uint64_t key[3]; };
static int lines[9];
#define HERE(n) (lines[n] = __LINE__)
static struct node *append(struct node *all, struct node *one) { *one = (struct node){all, {1, 2, 3}}; return one; }
__attribute__((noipa)) uint64_t walk_a(struct node *p, long n) { uint64_t s = 0; struct node *q = p; for (long i = 0; i < n; i++) { if (!q) q = p; s += q->key[0]; q = q->next; } return s; }
__attribute__((noipa)) uint64_t walk_b(struct node *p, long n) { uint64_t s = 0; struct node *q = p; for (long i = 0; i < n; i++) { if (!q) q = p; s += q->key[0]; q = q->next; } return s; }
__attribute__((noipa)) uint64_t both(uint64_t *a, uint64_t mask, long n) { uint64_t s = 0; for (uint64_t i = 0; i < n; i++) s += a[i & mask]; return s; }
static void *run_a(void *x) { struct node *all = 0; for (int i = 0; i < 3000; i++) { all = append(all, malloc(32)); HERE(0); } return (void *)walk_a(all, 30000000); }
static void *run_b(void *x) { struct node *all = 0; for (int i = 0; i < 3000; i++) { all = append(all, malloc(32)); HERE(1); } return (void *)walk_b(all, 30000000); }
int main(int count, char **arguments) {
    FILE *out = fopen(arguments[1], "w");
    uint64_t *array;
    if (count > 2) {
        int child = fork();
        if (!child) { array = calloc(8192, 8); HERE(2); }
        else { array = calloc(8192, 8); HERE(3); }
        both(array, 0x1fff, 20000000);
        if (!child) _exit(0);
        wait(0); lines[2] = lines[3] - 1;
    } else {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(threads + i, 0, i % 2 ? run_b : run_a, 0);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    }
    for (int i = 0; i < 4; i++) fprintf(out, "%d\n", lines[i]);
    return 0;
}
"#;
