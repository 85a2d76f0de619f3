// SPDX-License-Identifier: Apache-2.0

// A disk that fails on demand, for tests of a client in any language: a library that a process loads before the
// C library, and that makes chosen calls fail. Linux with glibc, 64 bits.
//
//     cc -shared -fPIC -O1 -o faults.so Tests/Faults/faults.c
//     UBIQUITY_FAULTS=/tmp/t/faults LD_PRELOAD=$PWD/faults.so python3 app.py
//
// UBIQUITY_FAULTS names a file of rules, which a test replaces while the process runs; without the file, nothing
// fails. A rule is a line `CALL PATH ERRNO [COUNT]`: calls of that kind on a path that contains PATH fail.
//
//     flush .journal EIO          every flush of such a file
//     write stores/1/ ENOSPC 1    the next write
//     flush /tmp/t/home$ EIO      PATH ends there: the folder itself, not what is in it
//     thread * EAGAIN 2           the next two threads
//
// CALL is open, write, flush (fsync, fdatasync), truncate, rename (either name), unlink, mkdir or thread
// (`pthread_create`). A failed write has written half of its bytes, as on a disk that fills up; a failed flush has
// flushed nothing; the others have done nothing. COUNT begins anew when the file of rules changes: replace it by a
// rename, so that no half of it is read. `$UBIQUITY_FAULTS.log` gets a line `CALL PATH ERRNO` for each failure, so that
// a test can tell that its rule was met. Paths that begin with $UBIQUITY_FAULTS never fail. Streams of the C library
// (`fopen`) and io_uring pass by.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { rules_max = 64, text_max = 8192 };

struct rule { char call[16], path[512]; int error; long count; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// Guarded by `lock`: the rules as they were last read, and the file they are from.
static struct rule rules[rules_max];
static int rule_count;
static struct stat source;

// MARK: - Rules

static int error_named(const char *name) {
    for (int error = 1; error < 200; error++) {
        const char *known = strerrorname_np(error);
        if (known && strcmp(known, name) == 0) return error;
    }
    fprintf(stderr, "faults: %s is not the name of an error\n", name);
    abort();
}

// Raw calls, here and below: this library's own are not to fail.
static void read_rules(void) {
    const char *name = getenv("UBIQUITY_FAULTS");
    int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) {
        rule_count = 0;
        memset(&source, 0, sizeof source);
        return;
    }
    struct stat now;
    char text[text_max] = "";
    fstat(file, &now);
    if (now.st_ino != source.st_ino || now.st_size != source.st_size
        || memcmp(&now.st_mtim, &source.st_mtim, sizeof now.st_mtim) != 0) {
        source = now;
        rule_count = 0;
        if (read(file, text, sizeof text - 1) < 0) abort();
        char *rest, name_of_error[32];
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            struct rule *rule = &rules[rule_count];
            rule->count = -1;
            int words = sscanf(line, "%15s %511s %31s %ld", rule->call, rule->path, name_of_error, &rule->count);
            if (words < 3 || ++rule_count == rules_max) {
                fprintf(stderr, "faults: not a rule, or too many: %s\n", line);
                abort();
            }
            rule->error = error_named(name_of_error);
        }
    }
    syscall(SYS_close, file);
}

static int matches(const char *path, const char *pattern) {
    size_t count = strlen(pattern), all = strlen(path);
    if (strcmp(pattern, "*") == 0) return 1;
    if (pattern[count - 1] != '$') return strstr(path, pattern) != NULL;
    return all >= count - 1 && strncmp(path + all - (count - 1), pattern, count - 1) == 0;
}

static void record(const char *call, const char *path, int error) {
    char name[PATH_MAX], line[PATH_MAX + 64];
    snprintf(name, sizeof name, "%s.log", getenv("UBIQUITY_FAULTS"));
    int count = snprintf(line, sizeof line, "%s %s %s\n", call, path, strerrorname_np(error));
    int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || syscall(SYS_write, file, line, (size_t)count) != count) abort();
    syscall(SYS_close, file);
}

// Whether a call is to fail; its error is then in `errno`, which is as it was otherwise.
static int fails(const char *call, const char *path) {
    const char *own = getenv("UBIQUITY_FAULTS");
    if (!own || strncmp(path, own, strlen(own)) == 0) return 0;
    int before = errno, error = 0;
    pthread_mutex_lock(&lock);
    read_rules();
    for (int index = 0; index < rule_count && !error; index++) {
        struct rule *rule = &rules[index];
        if (rule->count == 0 || strcmp(rule->call, call) != 0 || !matches(path, rule->path)) continue;
        if (rule->count > 0) rule->count--;
        error = rule->error;
        record(call, path, error);
    }
    pthread_mutex_unlock(&lock);
    errno = error ? error : before;
    return error != 0;
}

static void path_of(const char *link, char path[PATH_MAX]) {
    ssize_t count = readlink(link, path, PATH_MAX - 1);
    path[count < 0 ? 0 : count] = 0;
}

static int fails_on(const char *call, int file) {
    int before = errno;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    path_of(link, path);
    errno = before;
    return fails(call, path);
}

static int fails_at(const char *call, int folder, const char *name) {
    if (!name || name[0] == '/') return fails(call, name ? name : "");
    int before = errno;
    char link[64] = "/proc/self/cwd", path[PATH_MAX], all[2 * PATH_MAX];
    if (folder != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    path_of(link, path);
    snprintf(all, sizeof all, "%s/%s", path, name);
    errno = before;
    return fails(call, all);
}

// MARK: - Calls

static int open_at(int folder, const char *name, int flags, mode_t mode) {
    if (fails_at("open", folder, name)) return -1;
    return (int)syscall(SYS_openat, folder, name, flags, mode);
}

static mode_t mode_in(int flags, va_list rest) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

#define OPEN(name) int name(const char *path, int flags, ...) { \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = mode_in(flags, rest); \
    va_end(rest); \
    return open_at(AT_FDCWD, path, flags, mode); \
}
#define OPENAT(name) int name(int folder, const char *path, int flags, ...) { \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = mode_in(flags, rest); \
    va_end(rest); \
    return open_at(folder, path, flags, mode); \
}
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
// What a program calls that was compiled with checks.
int __open_2(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

ssize_t write(int file, const void *bytes, size_t count) {
    if (!fails_on("write", file)) return syscall(SYS_write, file, bytes, count);
    int error = errno;
    syscall(SYS_write, file, bytes, count / 2);
    errno = error;
    return -1;
}

static ssize_t write_at(int file, const void *bytes, size_t count, off_t offset) {
    if (!fails_on("write", file)) return syscall(SYS_pwrite64, file, bytes, count, offset);
    int error = errno;
    syscall(SYS_pwrite64, file, bytes, count / 2, offset);
    errno = error;
    return -1;
}
ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) { return write_at(file, bytes, count, at); }
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) { return write_at(file, bytes, count, at); }

ssize_t writev(int file, const struct iovec *parts, int count) {
    if (!fails_on("write", file)) return syscall(SYS_writev, file, parts, count);
    int error = errno;
    syscall(SYS_writev, file, parts, count / 2);
    errno = error;
    return -1;
}

static ssize_t writev_at(int file, const struct iovec *parts, int count, off_t offset) {
    if (!fails_on("write", file)) return syscall(SYS_pwritev, file, parts, count, offset, 0);
    int error = errno;
    syscall(SYS_pwritev, file, parts, count / 2, offset, 0);
    errno = error;
    return -1;
}
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) { return writev_at(file, parts, count, at); }
ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) {
    return writev_at(file, parts, count, at);
}

int fsync(int file) { return fails_on("flush", file) ? -1 : (int)syscall(SYS_fsync, file); }
int fdatasync(int file) { return fails_on("flush", file) ? -1 : (int)syscall(SYS_fdatasync, file); }

int ftruncate(int file, off_t size) {
    return fails_on("truncate", file) ? -1 : (int)syscall(SYS_ftruncate, file, size);
}
int ftruncate64(int file, off64_t size) {
    return fails_on("truncate", file) ? -1 : (int)syscall(SYS_ftruncate, file, size);
}

static int rename_at(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    if (fails_at("rename", from_folder, from) || fails_at("rename", to_folder, to)) return -1;
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}
int rename(const char *from, const char *to) { return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return rename_at(from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    return rename_at(from_folder, from, to_folder, to, flags);
}

int unlinkat(int folder, const char *name, int flags) {
    return fails_at("unlink", folder, name) ? -1 : (int)syscall(SYS_unlinkat, folder, name, flags);
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }

int mkdirat(int folder, const char *name, mode_t mode) {
    return fails_at("mkdir", folder, name) ? -1 : (int)syscall(SYS_mkdirat, folder, name, mode);
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    // This call returns its error.
    if (fails("thread", "")) return errno;
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, attributes, body, argument);
}
