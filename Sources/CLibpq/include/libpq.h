// SPDX-License-Identifier: Apache-2.0
//
// What this project uses of PostgreSQL's client library, libpq.so.5, which is loaded when a server
// first connects to a database: a program without one starts where libpq is not installed. The
// declarations are those of libpq-fe.h, whose binary interface has not changed since version 14.

#ifndef UBIQUITY_LIBPQ_H
#define UBIQUITY_LIBPQ_H

#include <stdbool.h>

typedef unsigned int Oid;
typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
typedef struct pg_cancel PGcancel;

/// An option of a connection. A list of them ends with one without a keyword.
typedef struct _PQconninfoOption {
    char *keyword;
    char *envvar;
    char *compiled;
    char *val;
    char *label;
    char *dispchar;
    int dispsize;
} PQconninfoOption;

typedef struct pgNotify {
    char *relname;
    int be_pid;
    char *extra;
    struct pgNotify *next;
} PGnotify;

typedef enum { CONNECTION_OK, CONNECTION_BAD } ConnStatusType;
typedef enum { PQSHOW_CONTEXT_NEVER, PQSHOW_CONTEXT_ERRORS } PGContextVisibility;
typedef enum {
    PGRES_COMMAND_OK = 1,
    PGRES_TUPLES_OK = 2,
    PGRES_PIPELINE_SYNC = 10,
    PGRES_PIPELINE_ABORTED = 11
} ExecStatusType;

typedef void (*PQnoticeReceiver)(void *arg, const PGresult *result);

/// Loads the library, once.
///
/// Returns: False if it is not installed or is older than version 14. Then no other function of
/// this header may be called.
bool libpq_load(void);

// EACH(result, name, (parameters), (arguments))
#define LIBPQ_FUNCTIONS(EACH) \
    EACH(int, PQbackendPID, (const PGconn *c), (c)) \
    EACH(int, PQcancel, (PGcancel * c, char *text, int size), (c, text, size)) \
    EACH(void, PQclear, (PGresult * r), (r)) \
    EACH(char *, PQcmdStatus, (PGresult * r), (r)) \
    EACH(char *, PQcmdTuples, (PGresult * r), (r)) \
    EACH(PGconn *, PQconnectdbParams, \
        (const char *const *names, const char *const *values, int expand), (names, values, expand)) \
    EACH(PQconninfoOption *, PQconninfo, (PGconn * c), (c)) \
    EACH(void, PQconninfoFree, (PQconninfoOption * options), (options)) \
    EACH(PQconninfoOption *, PQconninfoParse, (const char *text, char **error), (text, error)) \
    EACH(int, PQconsumeInput, (PGconn * c), (c)) \
    EACH(int, PQenterPipelineMode, (PGconn * c), (c)) \
    EACH(char *, PQerrorMessage, (const PGconn *c), (c)) \
    EACH(void, PQfinish, (PGconn * c), (c)) \
    EACH(int, PQflush, (PGconn * c), (c)) \
    EACH(void, PQfreeCancel, (PGcancel * c), (c)) \
    EACH(void, PQfreemem, (void *memory), (memory)) \
    EACH(Oid, PQftype, (const PGresult *r, int column), (r, column)) \
    EACH(PGcancel *, PQgetCancel, (PGconn * c), (c)) \
    EACH(PGresult *, PQgetResult, (PGconn * c), (c)) \
    EACH(int, PQgetisnull, (const PGresult *r, int row, int column), (r, row, column)) \
    EACH(int, PQgetlength, (const PGresult *r, int row, int column), (r, row, column)) \
    EACH(char *, PQgetvalue, (const PGresult *r, int row, int column), (r, row, column)) \
    EACH(int, PQisBusy, (PGconn * c), (c)) \
    EACH(int, PQnfields, (const PGresult *r), (r)) \
    EACH(PGnotify *, PQnotifies, (PGconn * c), (c)) \
    EACH(int, PQntuples, (const PGresult *r), (r)) \
    EACH(const char *, PQparameterStatus, (const PGconn *c, const char *name), (c, name)) \
    EACH(int, PQpipelineSync, (PGconn * c), (c)) \
    EACH(char *, PQresultErrorField, (const PGresult *r, int code), (r, code)) \
    EACH(ExecStatusType, PQresultStatus, (const PGresult *r), (r)) \
    EACH(int, PQsendPrepare, \
        (PGconn * c, const char *name, const char *query, int count, const Oid *types), \
        (c, name, query, count, types)) \
    EACH(int, PQsendQueryParams, \
        (PGconn * c, const char *query, int count, const Oid *types, const char *const *values, \
            const int *lengths, const int *formats, int format), \
        (c, query, count, types, values, lengths, formats, format)) \
    EACH(int, PQsendQueryPrepared, \
        (PGconn * c, const char *name, int count, const char *const *values, const int *lengths, \
            const int *formats, int format), \
        (c, name, count, values, lengths, formats, format)) \
    EACH(int, PQserverVersion, (const PGconn *c), (c)) \
    EACH(PGContextVisibility, PQsetErrorContextVisibility, \
        (PGconn * c, PGContextVisibility which), (c, which)) \
    EACH(PQnoticeReceiver, PQsetNoticeReceiver, \
        (PGconn * c, PQnoticeReceiver receiver, void *arg), (c, receiver, arg)) \
    EACH(int, PQsetnonblocking, (PGconn * c, int isNonblocking), (c, isNonblocking)) \
    EACH(int, PQsocket, (const PGconn *c), (c)) \
    EACH(ConnStatusType, PQstatus, (const PGconn *c), (c))

// Hidden, so that the library's calls of its own functions do not come here.
#define LIBPQ_DECLARE(result, name, parameters, arguments) \
    __attribute__((visibility("hidden"))) result name parameters;
LIBPQ_FUNCTIONS(LIBPQ_DECLARE)
#undef LIBPQ_DECLARE

#endif
