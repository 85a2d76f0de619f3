// SPDX-License-Identifier: Apache-2.0

#include "libpq.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#define DEFINE(result, name, parameters, arguments) \
    static result(*loaded_##name) parameters; \
    result name parameters { return loaded_##name arguments; }
LIBPQ_FUNCTIONS(DEFINE)

/// By the loader's search, and where Homebrew puts it.
static const char *const paths[] = {
#ifdef __APPLE__
    "libpq.5.dylib",
    "/opt/homebrew/opt/libpq/lib/libpq.5.dylib",
    "/usr/local/opt/libpq/lib/libpq.5.dylib",
#else
    "libpq.so.5",
#endif
};

static bool is_loaded = false;

static void load(void) {
    void *library = NULL;
    for (size_t i = 0; i < sizeof paths / sizeof *paths && library == NULL; i++) {
        library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    }
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
