// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CCurl.h"

#ifdef __linux__

#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

enum {
    CURL_GLOBAL_DEFAULT = 3,
    CURL_BLOB_COPY = 1,
    CURLOPT_WRITEDATA = 10001,
    CURLOPT_WRITEFUNCTION = 20011,
    CURLOPT_HEADERDATA = 10029,
    CURLOPT_XFERINFODATA = 10057,
    CURLOPT_HEADERFUNCTION = 20079,
    CURLOPT_SSL_CTX_FUNCTION = 20108,
    CURLOPT_SSL_CTX_DATA = 10109,
    CURLOPT_SOCKOPTFUNCTION = 20148,
    CURLOPT_SOCKOPTDATA = 10149,
    CURLOPT_XFERINFOFUNCTION = 20219,
    CURLOPT_CAINFO_BLOB = 40309,
    CURLOPT_PREREQFUNCTION = 20312,
    CURLOPT_PREREQDATA = 10313,
    CURLINFO_PRIVATE = 0x100000 + 21,
    OPENSSL_INIT_NO_ATEXIT = 0x00080000,
};

struct curl_blob {
    void *data;
    size_t len;
    unsigned int flags;
};

#define DEFINE(result, name, parameters, arguments) \
    static result(*loaded_##name) parameters; \
    result name parameters { return loaded_##name arguments; }
CCURL_FUNCTIONS(DEFINE)

static int (*easy_setopt)(CURL *, int, ...);
static int (*easy_getinfo)(CURL *, int, ...);

// Of OpenSSL; all or none. Found among the libraries that libcurl uses.
static int (*verify_certificate)(void *context);
static int (*verification_error)(const void *context);
static void *(*verification_certificate)(const void *context);
static void *(*verification_leaf)(const void *context);
static const void *(*not_before)(const void *certificate);
static const void *(*not_after)(const void *certificate);
static int (*time_parts)(const void *time, struct tm *parts);
static void (*set_verification)(void *tls, int (*verify)(void *context, void *number), void *number);

static bool is_loaded = false;
static bool has_openssl = false;

static bool load_openssl(void *library) {
#define FIND(variable, name) (*(void **)&variable = dlsym(library, name)) != NULL
    return FIND(verify_certificate, "X509_verify_cert")
        && FIND(verification_error, "X509_STORE_CTX_get_error")
        && FIND(verification_certificate, "X509_STORE_CTX_get_current_cert")
        && FIND(verification_leaf, "X509_STORE_CTX_get0_cert")
        && FIND(not_before, "X509_get0_notBefore") && FIND(not_after, "X509_get0_notAfter")
        && FIND(time_parts, "ASN1_TIME_to_tm")
        && FIND(set_verification, "SSL_CTX_set_cert_verify_callback");
}

static void load(void) {
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
#define LOAD(result, name, parameters, arguments) \
    if ((*(void **)&loaded_##name = dlsym(library, #name)) == NULL) return;
    CCURL_FUNCTIONS(LOAD)
    if (!(FIND(easy_setopt, "curl_easy_setopt"))) return;
    if (!(FIND(easy_getinfo, "curl_easy_getinfo"))) return;
    // The thread that runs curl goes on while the process exits, and needs OpenSSL until then.
    int (*init_openssl)(uint64_t, const void *);
    if (FIND(init_openssl, "OPENSSL_init_crypto")) init_openssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return;
    has_openssl = load_openssl(library);
    is_loaded = true;
}

bool ccurl_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_loaded;
}

int ccurl_set_long(CURL *easy, long option, long value) {
    return easy_setopt(easy, (int)option, value);
}

int ccurl_set_pointer(CURL *easy, long option, const void *value) {
    return easy_setopt(easy, (int)option, value);
}

int ccurl_set_body(CURL *easy, const void *bytes, size_t count) {
    int result = easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)count);
    return result != CURLE_OK ? result
                              : easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, count > 0 ? bytes : "");
}

int ccurl_set_trusted(CURL *easy, const void *pem, size_t count) {
    struct curl_blob blob = {(void *)pem, count, CURL_BLOB_COPY};
    int result = easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
    // The folder would count beside it.
    if (result == CURLE_OK) result = easy_setopt(easy, CURLOPT_CAINFO, (char *)NULL);
    if (result == CURLE_OK) result = easy_setopt(easy, CURLOPT_CAPATH, (char *)NULL);
    return result;
}

int ccurl_set_takers(CURL *easy, ccurl_taker header, ccurl_taker body, void *context) {
    easy_setopt(easy, CURLOPT_HEADERDATA, context);
    easy_setopt(easy, CURLOPT_WRITEDATA, context);
    int result = easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
    return result != CURLE_OK ? result : easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
}

int ccurl_set_progress(CURL *easy, ccurl_progress progress, void *context) {
    easy_setopt(easy, CURLOPT_XFERINFODATA, context);
    int result = easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, progress);
    return result != CURLE_OK ? result : easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
}

int ccurl_set_ready(CURL *easy, ccurl_ready ready, void *context) {
    easy_setopt(easy, CURLOPT_PREREQDATA, context);
    return easy_setopt(easy, CURLOPT_PREREQFUNCTION, ready);
}

static int prepare_socket(void *context, int socket, int purpose) {
    int bytes = (int)(intptr_t)context;
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    // So that a connection whose network is gone leaves the pool soon: one of HTTP/2 would be used again
    // and again, for the quarter of an hour after which the system gives up. Only of TCP.
    unsigned int milliseconds = 30000;
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
    return 0;
}

int ccurl_set_sockets(CURL *easy, int sendBufferBytes) {
    easy_setopt(easy, CURLOPT_SOCKOPTDATA, (void *)(intptr_t)sendBufferBytes);
    return easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, prepare_socket);
}

long ccurl_get_long(CURL *easy, long info) {
    long value = 0;
    return easy_getinfo(easy, (int)info, &value) == CURLE_OK ? value : 0;
}

void *ccurl_get_private(CURL *easy) {
    void *value = NULL;
    return easy_getinfo(easy, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : NULL;
}

// The verdicts of the thread's latest requests. One that is overwritten is only not told in detail.
enum { VERDICTS = 256 };
static _Thread_local struct {
    uintptr_t number;
    struct ccurl_verdict verdict;
} verdicts[VERDICTS];

static int64_t seconds(const void *time) {
    struct tm parts = {0};
    return time != NULL && time_parts(time, &parts) == 1 ? (int64_t)timegm(&parts) : INT64_MIN;
}

static int verify(void *context, void *number) {
    int isTrusted = verify_certificate(context);
    struct ccurl_verdict verdict = {
        isTrusted > 0 ? X509_V_OK : verification_error(context), INT64_MIN, INT64_MIN};
    bool isOfDate = verdict.result == X509_V_ERR_CERT_NOT_YET_VALID
        || verdict.result == X509_V_ERR_CERT_HAS_EXPIRED;
    void *certificate = isOfDate ? verification_certificate(context) : verification_leaf(context);
    if (certificate != NULL) {
        verdict.begins = seconds(not_before(certificate));
        verdict.ends = seconds(not_after(certificate));
    }
    verdicts[(uintptr_t)number % VERDICTS].number = (uintptr_t)number;
    verdicts[(uintptr_t)number % VERDICTS].verdict = verdict;
    return isTrusted;
}

static int prepare_tls(CURL *easy, void *tls, void *number) {
    if (has_openssl) set_verification(tls, verify, number);
    return CURLE_OK;
}

void ccurl_note_verdict(CURL *easy, uintptr_t number) {
    easy_setopt(easy, CURLOPT_SSL_CTX_DATA, (void *)number);
    easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, prepare_tls);
}

bool ccurl_verdict(uintptr_t number, struct ccurl_verdict *verdict) {
    if (verdicts[number % VERDICTS].number != number) return false;
    *verdict = verdicts[number % VERDICTS].verdict;
    return true;
}

void ccurl_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

void *ccurl_load_pointer(void **place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }

bool ccurl_replace_pointer(void **place, void *old, void *replacement) {
    return __atomic_compare_exchange_n(
        place, &old, replacement, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

#endif
