// SPDX-License-Identifier: Apache-2.0

#include "AllocationCount.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#ifdef __GLIBC__

static _Thread_local long count;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t number, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
  count++;
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  count++;
  return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
  count++;
  return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  count++;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
  count++;
  *memory = __libc_memalign(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}

long ubiquity_allocation_count(void) { return count; }

#else

long ubiquity_allocation_count(void) { return -1; }

#endif
