// SPDX-License-Identifier: Apache-2.0

// What Embedded Swift expects of a C library. A shell gives two functions: random bytes, and the number
// that a text stands for, rounded correctly.

#include <stddef.h>
#include <stdint.h>

#define IMPORTED(name) __attribute__((import_module("shell"), import_name(name)))

IMPORTED("random") void shell_random(void *bytes, size_t count);
IMPORTED("number") double shell_number(const char *text, size_t count);

void arc4random_buf(void *bytes, size_t count) { shell_random(bytes, count); }

const char *_swift_stdlib_strtod_clocale(const char *text, double *result) {
    size_t count = 0;
    while (text[count]) count++;
    *result = shell_number(text, count);
    // Of what is not a number, nothing was read.
    return *result == *result ? text + count : NULL;
}

// MARK: - Memory

extern uint8_t __heap_base;

// Each block has a head of 8 bytes, so that what follows is aligned to 16. Free blocks of one size are
// in a list. Four sizes for each power of two: at most a fifth is wasted. Blocks are never joined, so
// that a store takes at most the sum of what each size ever took.
typedef struct Block { uint32_t size_class, unused; struct Block *next; } Block;

enum { smallest = 32, classes = 4 * 27, align = 16, page = 65536 };

static Block *free_blocks[classes];
static uintptr_t top, end;

static uint32_t class_of(uint32_t size) {
    if (size <= smallest) return 0;
    const uint32_t power = 31 - __builtin_clz(size - 1);
    return 4 * (power - 5) + ((size - 1) >> (power - 2) & 3) + 1;
}

static uint32_t size_of(uint32_t size_class) {
    if (size_class == 0) return smallest;
    const uint32_t power = (size_class - 1) / 4 + 5;
    const uint32_t size = (1u << power) + (((size_class - 1) % 4 + 1) << (power - 2));
    return (size + align - 1) & ~(uint32_t)(align - 1);
}

static Block *new_block(uint32_t size) {
    if (top == 0) {
        top = ((uintptr_t)&__heap_base + align - 1 & ~(uintptr_t)(align - 1)) + 8;
        end = (uintptr_t)__builtin_wasm_memory_size(0) * page;
    }
    if (size > end - top) {
        const uint32_t missing = size - (end - top);
        // Seldom: at least as many as a sixteenth of what there is.
        uint32_t pages = (missing + page - 1) / page;
        if (pages < end / page / 16) pages = end / page / 16;
        if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) return NULL;
        end += (uintptr_t)pages * page;
    }
    Block *block = (Block *)top;
    top += size;
    return block;
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    if (alignment > align || size > 1u << 30) return 12;
    const uint32_t size_class = class_of((uint32_t)size + 8);
    Block *block = free_blocks[size_class];
    if (block) {
        free_blocks[size_class] = block->next;
    } else {
        block = new_block(size_of(size_class));
        if (!block) return 12;
        block->size_class = size_class;
    }
    *result = (uint8_t *)block + 8;
    return 0;
}

void free(void *pointer) {
    if (!pointer) return;
    Block *block = (Block *)((uint8_t *)pointer - 8);
    block->next = free_blocks[block->size_class];
    free_blocks[block->size_class] = block;
}

int memcmp(const void *a, const void *b, size_t count) {
    const uint8_t *x = a, *y = b;
    for (; count > 0; count--, x++, y++) if (*x != *y) return *x - *y;
    return 0;
}

void *memcpy(void *to, const void *from, size_t count) { return __builtin_memcpy(to, from, count); }
void *memmove(void *to, const void *from, size_t count) { return __builtin_memmove(to, from, count); }
void *memset(void *to, int byte, size_t count) { return __builtin_memset(to, byte, count); }

// MARK: - The compiler's own

// The messages of traps, which no optimised module has.
int putchar(int character) { return character; }

typedef union {
    __int128 whole;
    struct { uint64_t low, high; } half;
} Wide;

__int128 __multi3(__int128 a, __int128 b) {
    const Wide x = { .whole = a }, y = { .whole = b };
    const uint64_t mask = 0xFFFFFFFF;
    const uint64_t xl = x.half.low & mask, xh = x.half.low >> 32;
    const uint64_t yl = y.half.low & mask, yh = y.half.low >> 32;
    const uint64_t low = xl * yl, middle = xh * yl + (low >> 32), other = xl * yh + (middle & mask);
    Wide result;
    result.half.low = other << 32 | (low & mask);
    result.half.high = xh * yh + (middle >> 32) + (other >> 32) + x.half.low * y.half.high
        + x.half.high * y.half.low;
    return result.whole;
}
