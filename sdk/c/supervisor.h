// The SDK for plugins of the device supervisor in C.
//
// A plugin is a `plugin.toml` and one function for each of its routes:
//
//     #include "supervisor.h"
//
//     void hello(request_t *request) {
//         answer_textf(request, "Hello, %s!\n", param(request, "name"));
//     }
//
// A handler answers once: with `answer_…`, which sends the answer to the caller at once, or with `answer_stream`, whose
// stream it then writes until it returns. If it returns without an answer, the answer is 200 with no body.
//
// The capabilities are the functions `platform_supervisor_…` of `plugin.h`, which the build writes for those that
// `plugin.toml` requests. Each blocks until it is done. Each call runs in a fresh instance with its own memory, which
// is thrown away afterwards: there is no need to free anything.
//
// Most numbers that those functions take have no sign, and C converts a negative one silently:
// `platform_supervisor_timer_sleep(-1)` waits for 49 days, or until the call's time is over. Check a difference of times
// before you pass it to them. The functions below end the call with the reason if a length was negative, such as -1, which
// `read` and `snprintf` return if they fail.
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "failure.h"
#include "plugin.h"

#define TEXT "text/plain; charset=utf-8"
#define JSON "application/json; charset=utf-8"

typedef struct request request_t;
typedef struct stream stream_t;

// A route of `plugin.toml`; the build writes the table of routes.
typedef struct {
    const char *method;
    const char *path;
    void (*handler)(request_t *request);
} route_t;

extern const route_t routes[];
extern const size_t routes_count;

// Returns the value of the route's `:name`. As in a query, U+FFFD replaces a zero, at which the string would end.
const char *param(const request_t *request, const char *name);
// Returns the first value of a query parameter, decoded; NULL if it is missing.
const char *query(const request_t *request, const char *name);
// Reads a query parameter as a whole number from `least` to `most`, in digits with or without a minus sign before them, or
// `otherwise` if it is missing. If it is not such a number, answers with a 400 that names it and returns false: the handler
// should then return too.
bool query_long(request_t *request, const char *name, long least, long most, long otherwise, long *value);
// Returns the first value of a header field, whose name is in lower case; NULL if it is missing.
const char *header(const request_t *request, const char *name);
// Returns the length of the next piece of the request's body, which is in `*bytes`; 0 at the end.
size_t body_chunk(request_t *request, const uint8_t **bytes);

// Answers 200 with a body of this type.
void answer(request_t *request, const char *content_type, const void *bytes, size_t length);
void answer_textf(request_t *request, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_jsonf(request_t *request, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Answers `{"status":"failed","message":...}`. The message says which input was wrong, and in what way.
void answer_errorf(request_t *request, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
// Sets the status of the answer, before it is sent.
void set_status(request_t *request, int status);
// Adds a header field to the answer, before it is sent.
void add_header(request_t *request, const char *name, const char *value);

// Answers 200 with a body that is written piece by piece while the caller reads.
stream_t *answer_stream(request_t *request, const char *content_type);
// Writes all bytes, and waits until the caller has taken them. False if the caller has disconnected: stop writing then.
bool stream_write(stream_t *stream, const void *bytes, size_t length);
bool stream_writef(stream_t *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Answers 200 with a stream that a function of the bindings has returned, such as that of the journal. The bytes pass outside
// the plugin, also after the call has ended.
void answer_forwarded(request_t *request, const char *content_type, uint32_t stream);

// Returns `text` for a JSON string: with escapes, without the quotation marks.
char *json_escaped(const char *text);
// Writes one line to the supervisor's log.
void logf_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void logf_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Returns text in the form of the bindings. U+FFFD replaces each byte that is not UTF-8, which the device does not accept.
plugin_string_t string_of(const char *text);
// Returns formatted text in the form of the bindings, likewise.
plugin_string_t vstring_of(const char *format, va_list arguments);
// Returns formatted bytes with a zero behind them, and their number in `*length`.
char *vformat(const char *format, va_list arguments, size_t *length);
// Returns a copy of the bindings' text as a string, with a zero at its end. If the text itself contains a zero, functions for
// strings see only what is before it: `text.ptr` and `text.len` are the whole text, and `text_is` compares all of it.
char *text_of(plugin_string_t text);
// Returns whether the bindings' text equals `other`.
bool text_is(plugin_string_t text, const char *other);

#endif
