/* Executes single instructions of a processor with AVX-512, and tells what each input changes.
 *
 * A request holds an instruction, two states of the registers and ranges of memory. The answer holds the
 * state after the instruction, the bytes that it stored, and for every register and group of flags: what else
 * comes out if that one alone has its value of the second state. Memory is made where it is touched, its
 * contents a function of the address; "outside" changes every byte but those of the ranges, "inside" those
 * alone. effects_native.rs reads the answers. */

#define _GNU_SOURCE
#include <immintrin.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_PAGES = 48, MOST_STORES = 512, MOST_RANGES = 64, FLIPS = 96, OUTSIDE = 60, INSIDE = 61 };

struct state { uint64_t gpr[16], flags, k[8], zmm[32][8]; };
struct range { uint64_t start, bytes; };
struct request {
    uint64_t length, ranges;
    uint8_t code[16];
    struct state base, other;
    struct range range[MOST_RANGES];
};
/* What differs from the run of the base state: places, upper parts of vectors, memory. */
struct change { uint64_t places; uint32_t upper; uint16_t memory, failed; };
struct store { uint64_t address, value; };
struct answer {
    uint64_t status, stores;
    struct state out;
    struct change change[FLIPS];
    struct store store[MOST_STORES];
};

/* The stub: registers in, the instruction, registers out. Its data follow its code at a fixed distance. */
#define EACH8 "0,1,2,3,4,5,6,7"
#define EACH32 EACH8 ",8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
#define GPRS(M) M(0, rax) M(1, rcx) M(2, rdx) M(3, rbx) M(5, rbp) M(6, rsi) M(7, rdi) M(8, r8) M(9, r9) \
    M(10, r10) M(11, r11) M(12, r12) M(13, r13) M(14, r14) M(15, r15) M(4, rsp)
#define IN(n, r) "mov stub_in+8*" #n "(%rip), %" #r "\n"
#define OUT(n, r) "mov %" #r ", stub_out+8*" #n "(%rip)\n"
__asm__(".section .stub,\"aw\"\n.balign 4096\n.globl stub\nstub:\n"
    "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
    "mov %rsp, stub_rsp(%rip)\n"
    ".irp n," EACH32 "\nvmovdqu64 stub_in+200+64*\\n(%rip), %zmm\\n\n.endr\n"
    ".irp n," EACH8 "\nkmovq stub_in+136+8*\\n(%rip), %k\\n\n.endr\n"
    "pushq stub_in+128(%rip); popfq\n" GPRS(IN)
    ".globl stub_slot\nstub_slot: .skip 32, 0x90\n"
    ".globl stub_back\nstub_back:\n" GPRS(OUT)
    "mov stub_rsp(%rip), %rsp; pushfq; popq stub_out+128(%rip)\n"
    ".irp n," EACH8 "\nkmovq %k\\n, stub_out+136+8*\\n(%rip)\n.endr\n"
    ".irp n," EACH32 "\nvmovdqu64 %zmm\\n, stub_out+200+64*\\n(%rip)\n.endr\n"
    ".globl stub_bail\nstub_bail:\n"
    "mov stub_rsp(%rip), %rsp; cld; vzeroupper\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"
    ".balign 4096\nstub_data:\nstub_rsp: .quad 0\n.balign 64\nstub_in: .skip 2304\nstub_out: .skip 2304\n"
    ".balign 4096\n.globl stub_end\nstub_end:\n.text\n");
extern uint8_t stub[], stub_slot[], stub_back[], stub_bail[], stub_end[];
extern struct state stub_in, stub_out;
__asm__(".globl stub_in\n.globl stub_out\n.globl stub_data\n");
extern uint8_t stub_data[];

/* Where it runs: its code page cannot be written there. */
static uint8_t *const home = (uint8_t *)0x300000000000;
static uint8_t *alias;
#define AT(symbol) ((void *)(home + ((uint8_t *)&(symbol) - stub)))

struct page { uint64_t address; uint8_t clean[PAGE]; };
static struct page pages[MOST_PAGES];
static int used;
static volatile uint64_t failed;
static int where; /* 0: as it is; OUTSIDE, INSIDE: changed there */
static struct request request;
static struct answer answer;

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static int inside(uint64_t address) {
    for (uint64_t i = 0; i < request.ranges; i++)
        if (address - request.range[i].start < request.range[i].bytes)
            return 1;
    return 0;
}

static void fill(uint64_t address, uint8_t *to) {
    for (uint64_t i = 0; i < PAGE; i += 8) {
        uint64_t value = mix(address + i);
        memcpy(to + i, &value, 8);
    }
    if (where)
        for (uint64_t i = 0; i < PAGE; i++)
            if (inside(address + i) == (where == INSIDE))
                to[i] ^= (mix(~(address + i)) | 1) & 0xff;
}

static void on_signal(int number, siginfo_t *info, void *context) {
    ucontext_t *user = context;
    uint64_t address = (uint64_t)info->si_addr & ~(uint64_t)(PAGE - 1);
    if (number == SIGSEGV && info->si_code == SEGV_MAPERR && used < MOST_PAGES) {
        void *made = mmap((void *)address, PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (made != MAP_FAILED) {
            struct page *page = &pages[used++];
            page->address = address;
            fill(address, page->clean);
            memcpy(made, page->clean, PAGE);
            return;
        }
    }
    failed = number;
    user->uc_mcontext.gregs[REG_RIP] = (greg_t)AT(*stub_bail);
}

static void forget_pages(void) {
    for (int i = 0; i < used; i++)
        munmap((void *)pages[i].address, PAGE);
    used = 0;
}

/* Runs it from `in`; what it stored is taken back. */
static uint64_t run(const struct state *in, struct state *out, struct store *store, uint64_t *stores) {
    if (used > MOST_PAGES / 2)
        forget_pages();
    memcpy(AT(stub_in), in, sizeof *in);
    failed = 0;
    ((void (*)(void))home)();
    _mm_setcsr(0x1f80);
    memcpy(out, AT(stub_out), sizeof *out);
    *stores = 0;
    for (int i = 0; i < used; i++) {
        uint8_t *real = (uint8_t *)pages[i].address;
        if (!memcmp(real, pages[i].clean, PAGE))
            continue;
        for (int at = 0; at < PAGE; at++)
            if (real[at] != pages[i].clean[at] && *stores < MOST_STORES)
                store[(*stores)++] = (struct store){pages[i].address + at, real[at]};
        memcpy(real, pages[i].clean, PAGE);
    }
    return failed;
}

enum { CF = 1, REST = 0xd4, DF = 0x400, OF = 0x800 };
static const uint64_t GROUP[4] = {CF, OF, REST, DF};

static struct change compare(const struct state *a, const struct state *b) {
    struct change c = {0};
    for (int i = 0; i < 16; i++)
        c.places |= (uint64_t)(a->gpr[i] != b->gpr[i]) << i;
    for (int i = 0; i < 32; i++) {
        c.places |= (uint64_t)(memcmp(a->zmm[i], b->zmm[i], 16) != 0) << (16 + i);
        c.upper |= (uint32_t)(memcmp(a->zmm[i] + 2, b->zmm[i] + 2, 48) != 0) << i;
    }
    for (int i = 0; i < 8; i++)
        c.places |= (uint64_t)(a->k[i] != b->k[i]) << (48 + i);
    for (int i = 0; i < 4; i++)
        c.places |= (uint64_t)(((a->flags ^ b->flags) & GROUP[i]) != 0) << (56 + i);
    return c;
}

/* The base state with one place of the other. */
static void flip(struct state *to, int place) {
    *to = request.base;
    const struct state *other = &request.other;
    if (place < 16)
        to->gpr[place] = other->gpr[place];
    else if (place < 48)
        memcpy(to->zmm[place - 16], other->zmm[place - 16], 16);
    else if (place < 56)
        to->k[place - 48] = other->k[place - 48];
    else if (place < 60)
        to->flags = (to->flags & ~GROUP[place - 56]) | (other->flags & GROUP[place - 56]);
    else if (place >= 64)
        memcpy(to->zmm[place - 64] + 2, other->zmm[place - 64] + 2, 48);
}

static void put_code(void) {
    uint8_t *slot = alias + (stub_slot - stub);
    memcpy(slot, request.code, request.length);
    int32_t far = (int32_t)(stub_back - (stub_slot + request.length + 5));
    slot[request.length] = 0xe9;
    memcpy(slot + request.length + 1, &far, 4);
    /* Code written at another address is seen behind a serialising instruction. */
    unsigned a = 0, b, c, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d)::"memory");
}

static void respond(void) {
    static struct store store[MOST_STORES];
    struct state out, in;
    uint64_t stores;
    memset(&answer, 0, sizeof answer);
    put_code();
    where = 0;
    answer.status = run(&request.base, &answer.out, answer.store, &answer.stores);
    if (answer.status)
        return;
    run(&request.base, &out, store, &stores);
    struct change same = compare(&out, &answer.out);
    if (same.places || same.upper) {
        answer.status = 200;
        return;
    }
    for (int place = 0; place < FLIPS; place++) {
        if (place == 62 || place == 63)
            continue;
        if (place == OUTSIDE || place == INSIDE) {
            forget_pages();
            where = place;
        }
        flip(&in, place);
        uint64_t status = run(&in, &out, store, &stores);
        if (where) {
            forget_pages();
            where = 0;
        }
        struct change *change = &answer.change[place];
        *change = compare(&out, &answer.out);
        change->failed = (uint16_t)status;
        change->memory = stores != answer.stores || memcmp(store, answer.store, stores * sizeof *store);
    }
}

static int take(void *to, size_t bytes) {
    for (uint8_t *at = to; bytes;) {
        ssize_t got = read(0, at, bytes);
        if (got <= 0)
            return 0;
        at += got, bytes -= (size_t)got;
    }
    return 1;
}

static int give(const void *from, size_t bytes) {
    for (const uint8_t *at = from; bytes;) {
        ssize_t put = write(1, at, bytes);
        if (put <= 0)
            return 0;
        at += put, bytes -= (size_t)put;
    }
    return 1;
}

int main(void) {
    static uint8_t stack[65536];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, 0);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    int caught[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (unsigned i = 0; i < sizeof caught / sizeof *caught; i++)
        sigaction(caught[i], &action, 0);
    size_t code = (size_t)(stub_data - stub), all = (size_t)(stub_end - stub);
    int file = memfd_create("stub", 0);
    if (file < 0 || write(file, stub, code) != (ssize_t)code)
        return 1;
    alias = mmap(0, code, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *here = mmap(home, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    void *run_here = mmap(home, code, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, file, 0);
    if (alias == MAP_FAILED || here == MAP_FAILED || run_here == MAP_FAILED)
        return 1;
    while (take(&request, sizeof request)) {
        respond();
        forget_pages();
        if (!give(&answer, sizeof answer))
            return 1;
    }
    return 0;
}
