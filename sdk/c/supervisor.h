// What a plugin of the device supervisor is written with in C.
//
// A plugin is a `plugin.toml` and one function for each of its routes:
//
//     #include "supervisor.h"
//
//     void hello(request_t *request) {
//         answer_textf(request, "Hello, %s!\n", param(request, "name"));
//     }
//
// A handler answers once: with `answer_…`, which takes the answer to the caller at once, or with `answer_stream`, whose
// stream it then writes until it returns. Whoever returns without an answer answers with 200 and no body.
//
// The capabilities are the functions `platform_supervisor_…` of `plugin.h`, which the build writes for what `plugin.toml`
// asks for. Each blocks until it is done. Each call runs in a fresh instance with memory of its own, which is thrown away
// afterwards: there is no need to free anything.
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin.h"

#define TEXT "text/plain; charset=utf-8"
#define JSON "application/json; charset=utf-8"

typedef struct request request_t;
typedef struct stream stream_t;

// A route of `plugin.toml`; the build writes the table of them.
typedef struct {
    const char *method;
    const char *path;
    void (*handler)(request_t *request);
} route_t;

extern const route_t routes[];
extern const size_t routes_count;

// What the route's `:name` stands for.
const char *param(const request_t *request, const char *name);
// The first value of a query parameter, decoded; NULL if it is missing.
const char *query(const request_t *request, const char *name);
// A query parameter as a whole number from `least` to `most`, or `otherwise` if it is missing. If it is not such a number,
// answers with a 400 that names it and returns false: the handler returns then, too.
bool query_long(request_t *request, const char *name, long least, long most, long otherwise, long *value);
// The first value of a header field, whose name is in lower case; NULL if it is missing.
const char *header(const request_t *request, const char *name);
// The next piece of the request's body in `*bytes`, and its length; 0 at the end.
size_t body_chunk(request_t *request, const uint8_t **bytes);

// 200 with a body of this type.
void answer(request_t *request, const char *content_type, const void *bytes, size_t length);
void answer_textf(request_t *request, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_jsonf(request_t *request, const char *format, ...) __attribute__((format(printf, 2, 3)));
// `{"status":"failed","message":...}`, which says what was wrong with which input.
void answer_errorf(request_t *request, uint16_t status, const char *format, ...) __attribute__((format(printf, 3, 4)));
// The status of an answer that is still to come.
void set_status(request_t *request, uint16_t status);
// A header field of an answer that is still to come.
void add_header(request_t *request, const char *name, const char *value);

// 200 with a body that is written piece by piece while the caller reads.
stream_t *answer_stream(request_t *request, const char *content_type);
// Writes all of it, waiting until the caller has taken it. False when the caller has gone: stop writing then.
bool stream_write(stream_t *stream, const void *bytes, size_t length);
bool stream_writef(stream_t *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

// `text` for a JSON string: with escapes, without the quotation marks.
char *json_escaped(const char *text);
// One line in the supervisor's log.
void logf_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void logf_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Text as the bindings take it.
plugin_string_t string_of(const char *text);
// Formatted text likewise.
plugin_string_t vstring_of(const char *format, va_list arguments);
// Text of the bindings with a zero at its end.
char *text_of(plugin_string_t text);
// Whether text of the bindings is this.
bool text_is(plugin_string_t text, const char *other);

#endif
