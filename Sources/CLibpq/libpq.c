// SPDX-License-Identifier: Apache-2.0

#include "libpq.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#define DEFINE(result, name, parameters, arguments) \
    static result(*loaded_##name) parameters; \
    result name parameters { return loaded_##name arguments; }
LIBPQ_FUNCTIONS(DEFINE)

static bool is_loaded = false;

static void load(void) {
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
#define LOAD(result, name, parameters, arguments) \
    if ((*(void **)&loaded_##name = dlsym(library, #name)) == NULL) return;
    LIBPQ_FUNCTIONS(LOAD)
    is_loaded = true;
}

bool libpq_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_loaded;
}
