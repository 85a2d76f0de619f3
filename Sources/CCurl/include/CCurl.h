// SPDX-License-Identifier: Apache-2.0
//
// What this project uses of libcurl.so.4, which is loaded when a process makes its first request: a
// program that makes none starts where libcurl is not installed. The declarations are those of
// curl.h and multi.h, whose binary interface does not change. What Swift cannot call, because it
// takes a variable number of arguments, has a function of its own here, with the prefix ccurl.

#ifndef UBIQUITY_CURL_H
#define UBIQUITY_CURL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Curl_easy CURL;
typedef struct Curl_multi CURLM;
typedef int64_t curl_off_t;

struct curl_slist {
    char *data;
    struct curl_slist *next;
};

typedef struct CURLMsg {
    int msg;
    CURL *easy_handle;
    union {
        void *whatever;
        int result;
    } data;
} CURLMsg;

// Options, of 7.66 unless noted.
enum {
    CURLOPT_URL = 10002,
    CURLOPT_PROXY = 10004,
    CURLOPT_ERRORBUFFER = 10010,
    CURLOPT_HTTPHEADER = 10023,
    CURLOPT_SSLVERSION = 32,
    CURLOPT_CUSTOMREQUEST = 10036,
    CURLOPT_NOPROGRESS = 43,
    CURLOPT_NOBODY = 44,
    CURLOPT_POSTFIELDSIZE = 60,
    CURLOPT_SSL_VERIFYPEER = 64,
    CURLOPT_CAINFO = 10065,
    CURLOPT_FRESH_CONNECT = 74,
    CURLOPT_FORBID_REUSE = 75,
    CURLOPT_HTTPGET = 80,
    CURLOPT_SSL_VERIFYHOST = 81,
    CURLOPT_HTTP_VERSION = 84,
    CURLOPT_DNS_CACHE_TIMEOUT = 92,
    CURLOPT_CAPATH = 10097,
    CURLOPT_NOSIGNAL = 99,
    CURLOPT_PRIVATE = 10103,
    CURLOPT_SSL_SESSIONID_CACHE = 150,
    CURLOPT_CONNECTTIMEOUT_MS = 156,
    CURLOPT_COPYPOSTFIELDS = 10165,
    CURLOPT_NOPROXY = 10177,
    CURLOPT_PROTOCOLS = 181,
    CURLOPT_PINNEDPUBLICKEY = 10230,
    CURLOPT_UNIX_SOCKET_PATH = 10231,
    CURLOPT_PATH_AS_IS = 234,
    CURLOPT_PROXY_CAINFO = 10246,
    CURLOPT_PROXY_CAPATH = 10247,
    CURLOPT_SUPPRESS_CONNECT_HEADERS = 265,
    CURLOPT_DISALLOW_USERNAME_IN_URL = 278,
    CURLOPT_UPLOAD_BUFFERSIZE = 280,
    CURLOPT_HTTP09_ALLOWED = 285,
    CURLOPT_QUICK_EXIT = 322,  // 7.87
};

enum {
    CURLPROTO_HTTP = 1,
    CURLPROTO_HTTPS = 2,
    CURL_SSLVERSION_TLSv1_2 = 6,
    CURL_HTTP_VERSION_2TLS = 4,
    CURL_ERROR_SIZE = 256,
    CURLMSG_DONE = 1,
};

// Results.
enum {
    CURLE_OK = 0,
    CURLE_UNSUPPORTED_PROTOCOL = 1,
    CURLE_URL_MALFORMAT = 3,
    CURLE_COULDNT_RESOLVE_PROXY = 5,
    CURLE_COULDNT_RESOLVE_HOST = 6,
    CURLE_COULDNT_CONNECT = 7,
    CURLE_WEIRD_SERVER_REPLY = 8,
    CURLE_HTTP2 = 16,
    CURLE_PARTIAL_FILE = 18,
    CURLE_OPERATION_TIMEDOUT = 28,
    CURLE_SSL_CONNECT_ERROR = 35,
    CURLE_ABORTED_BY_CALLBACK = 42,
    CURLE_GOT_NOTHING = 52,
    CURLE_SEND_ERROR = 55,
    CURLE_RECV_ERROR = 56,
    CURLE_PEER_FAILED_VERIFICATION = 60,
    CURLE_SSL_CACERT_BADFILE = 77,
    CURLE_SSL_PINNEDPUBKEYNOTMATCH = 90,
    CURLE_HTTP2_STREAM = 92,
};

enum {
    CURLINFO_SSL_VERIFYRESULT = 0x200000 + 13,
    CURLINFO_HTTP_CONNECTCODE = 0x200000 + 22,
    CURLINFO_OS_ERRNO = 0x200000 + 25,
};

// Results of OpenSSL's verification.
enum {
    X509_V_OK = 0,
    X509_V_ERR_UNSPECIFIED = 1,
    X509_V_ERR_CERT_NOT_YET_VALID = 9,
    X509_V_ERR_CERT_HAS_EXPIRED = 10,
};

/// Loads the library, once.
///
/// Returns: False if it is not installed or is older than 7.68. Then no other function of this
/// header may be called.
bool ccurl_load(void);

// EACH(result, name, (parameters), (arguments))
#define CCURL_FUNCTIONS(EACH) \
    EACH(int, curl_global_init, (long flags), (flags)) \
    EACH(CURL *, curl_easy_init, (void), ()) \
    EACH(void, curl_easy_cleanup, (CURL * easy), (easy)) \
    EACH(void, curl_easy_reset, (CURL * easy), (easy)) \
    EACH(const char *, curl_easy_strerror, (int code), (code)) \
    EACH(struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *text), \
        (list, text)) \
    EACH(void, curl_slist_free_all, (struct curl_slist * list), (list)) \
    EACH(CURLM *, curl_multi_init, (void), ()) \
    EACH(int, curl_multi_cleanup, (CURLM * multi), (multi)) \
    EACH(int, curl_multi_add_handle, (CURLM * multi, CURL *easy), (multi, easy)) \
    EACH(int, curl_multi_remove_handle, (CURLM * multi, CURL *easy), (multi, easy)) \
    EACH(int, curl_multi_perform, (CURLM * multi, int *running), (multi, running)) \
    EACH(CURLMsg *, curl_multi_info_read, (CURLM * multi, int *left), (multi, left)) \
    EACH(int, curl_multi_poll, \
        (CURLM * multi, void *extra, unsigned int count, int milliseconds, int *ready), \
        (multi, extra, count, milliseconds, ready)) \
    EACH(int, curl_multi_wakeup, (CURLM * multi), (multi))

// Hidden, so that the library's calls of its own functions do not come here.
#define CCURL_HIDDEN __attribute__((visibility("hidden")))
#define CCURL_DECLARE(result, name, parameters, arguments) CCURL_HIDDEN result name parameters;
CCURL_FUNCTIONS(CCURL_DECLARE)
#undef CCURL_DECLARE

// The options by their types. Each returns 0, or curl's code for an option that is not set.

int ccurl_set_long(CURL *easy, long option, long value);
/// Of a string, curl makes a copy.
int ccurl_set_pointer(CURL *easy, long option, const void *value);
/// Of a body, curl makes a copy.
int ccurl_set_body(CURL *easy, const void *bytes, size_t count);
/// The only certificates accepted, in PEM. Curl makes a copy. Fails for a curl older than 7.77.
int ccurl_set_trusted(CURL *easy, const void *pem, size_t count);

typedef size_t (*ccurl_taker)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_progress)(
    void *context, curl_off_t expected, curl_off_t received, curl_off_t toSend, curl_off_t sent);
typedef int (*ccurl_ready)(void *context, char *peer, char *local, int peerPort, int localPort);

/// `header` takes a line of the answer's head, `body` a piece of its body. Each returns the number
/// of bytes; anything else ends the request.
int ccurl_set_takers(CURL *easy, ccurl_taker header, ccurl_taker body, void *context);
/// Called often; anything but 0 ends the request.
int ccurl_set_progress(CURL *easy, ccurl_progress progress, void *context);
/// Called each time the request is about to be sent; anything but 0 ends it. Fails for a curl older
/// than 7.80.
int ccurl_set_ready(CURL *easy, ccurl_ready ready, void *context);
/// Sockets have a small send buffer, and are not inherited by other programs.
int ccurl_set_sockets(CURL *easy, int sendBufferBytes);

/// A number that is 0 if curl does not know it.
long ccurl_get_long(CURL *easy, long info);
/// See CURLOPT_PRIVATE.
void *ccurl_get_private(CURL *easy);

/// What OpenSSL found of a server's certificate.
struct ccurl_verdict {
    /// A result of its verification.
    long result;
    /// When the certificate that it concerns begins and ceases to be valid, in seconds since 1970;
    /// INT64_MIN if unknown.
    int64_t begins, ends;
};

/// Notes the verdict of each verification under this number. Only a number, because a connection may
/// outlive the request for which it was made. Does nothing where curl does not use OpenSSL.
void ccurl_note_verdict(CURL *easy, uintptr_t number);
/// To be called on the thread that runs curl.
/// Returns: False if there is none.
bool ccurl_verdict(uintptr_t number, struct ccurl_verdict *verdict);

/// Names the calling thread, in at most 15 characters.
void ccurl_name_thread(const char *name);

// A pointer that several threads use, and a process that has forked off from them.

void *ccurl_load_pointer(void **place);
/// Returns: False, without a change, if another thread was faster.
bool ccurl_replace_pointer(void **place, void *old, void *replacement);

#endif
