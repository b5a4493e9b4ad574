#include "supervisor.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "no_callback.h"
#include "text.h"

// How much of a request's body is read at a time, in bytes.
#define CHUNK (64 << 10)

// The functions of the bindings for streams are named after the first interface with one; the build defines this if that is
// another one.
#ifndef BODY_STREAM
#define BODY_STREAM(name) platform_supervisor_types_stream_u8_##name
#endif

typedef platform_supervisor_types_body_t body_t;

struct stream {
    BODY_STREAM(writer_t) writer;
    bool reader_left;
};

struct request {
    exports_platform_supervisor_handler_request_t *wit;
    exports_platform_supervisor_handler_response_t response;
    stream_t stream;
    uint8_t *chunk;
    bool answered;
    bool streaming;
    bool body_ended;
};

// ---- The request

const char *param(const request_t *request, const char *name) {
    for (size_t index = 0; index < request->wit->params.len; index++) {
        plugin_tuple2_string_string_t *pair = &request->wit->params.ptr[index];
        if (text_is(pair->f0, name)) return (char *)valid_text((char *)pair->f1.ptr, pair->f1.len).ptr;
    }
    return NULL;
}

const char *header(const request_t *request, const char *name) {
    for (size_t index = 0; index < request->wit->headers.len; index++) {
        plugin_tuple2_string_list_u8_t *pair = &request->wit->headers.ptr[index];
        if (text_is(pair->f0, name)) return copy_of(pair->f1.ptr, pair->f1.len);
    }
    return NULL;
}

static int hexadecimal(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// Decodes as browsers do: an invalid escape stays unchanged, and U+FFFD replaces what is not UTF-8. It replaces a zero, too.
static char *decoded(const char *text, size_t length) {
    char *result = allocate(length + 1), *to = result;
    for (size_t at = 0; at < length; at++) {
        if (text[at] == '%' && at + 2 < length && hexadecimal(text[at + 1]) >= 0 && hexadecimal(text[at + 2]) >= 0) {
            *to++ = (char)(hexadecimal(text[at + 1]) << 4 | hexadecimal(text[at + 2]));
            at += 2;
        } else {
            *to++ = text[at] == '+' ? ' ' : text[at];
        }
    }
    char *valid = (char *)valid_text(result, (size_t)(to - result)).ptr;
    free(result);
    return valid;
}

const char *query(const request_t *request, const char *name) {
    const char *at = (const char *)request->wit->query.ptr, *end = at + request->wit->query.len;
    while (at < end) {
        const char *next = memchr(at, '&', (size_t)(end - at));
        if (next == NULL) next = end;
        const char *equal = memchr(at, '=', (size_t)(next - at));
        if (equal == NULL) equal = next;
        if (strcmp(decoded(at, (size_t)(equal - at)), name) == 0) {
            return equal < next ? decoded(equal + 1, (size_t)(next - equal - 1)) : "";
        }
        at = next + 1;
    }
    return NULL;
}

bool query_long(request_t *request, const char *name, long least, long most, long otherwise, long *value) {
    const char *text = query(request, name);
    *value = otherwise;
    if (text == NULL) return true;
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    // The function also accepts a plus sign, and blanks before the number.
    bool has_form = *text == '-' || isdigit((unsigned char)*text);
    bool is_number = has_form && errno == 0 && end != text && *end == '\0';
    if (is_number && *value >= least && *value <= most) return true;
    answer_errorf(request, 400, "query parameter `%s` must be a whole number from %ld to %ld, not `%.64s`", name, least, most,
                  text);
    return false;
}

// Returns the outcome of reading or writing a stream. If the operation is blocked, waits for its end.
static plugin_waitable_status_t finished(uint32_t stream, plugin_waitable_status_t status) {
    if (status != PLUGIN_WAITABLE_STATUS_BLOCKED) return status;
    plugin_waitable_set_t set = plugin_waitable_set_new();
    plugin_waitable_join(stream, set);
    plugin_event_t event;
    plugin_waitable_set_wait(set, &event);
    plugin_waitable_join(stream, 0);
    plugin_waitable_set_drop(set);
    return event.code;
}

size_t body_chunk(request_t *request, const uint8_t **bytes) {
    body_t *body = &request->wit->body;
    if (request->body_ended) return 0;
    if (body->tag != PLATFORM_SUPERVISOR_TYPES_BODY_STREAM) {
        request->body_ended = true;
        bool is_empty = body->tag == PLATFORM_SUPERVISOR_TYPES_BODY_EMPTY;
        *bytes = is_empty ? NULL : body->val.bytes.ptr;
        return is_empty ? 0 : body->val.bytes.len;
    }
    if (request->chunk == NULL) request->chunk = allocate(CHUNK);
    *bytes = request->chunk;
    for (;;) {
        uint32_t stream = body->val.stream;
        plugin_waitable_status_t status =
            finished(stream, BODY_STREAM(read)(stream, request->chunk, CHUNK));
        if (PLUGIN_WAITABLE_STATE(status) != PLUGIN_WAITABLE_COMPLETED) {
            request->body_ended = true;
            BODY_STREAM(drop_readable)(stream);
        }
        if (request->body_ended || PLUGIN_WAITABLE_COUNT(status) > 0) return PLUGIN_WAITABLE_COUNT(status);
    }
}

// ---- The answer

// Of a larger number, the interface would pass on only the lowest bits: 65736 would become 200.
static uint16_t checked_status(const char *function, int status) {
    if (status < 0 || status > UINT16_MAX) {
        end_failed_call("`%s` is called with %d, which is not a status", function, status);
    }
    return (uint16_t)status;
}

void set_status(request_t *request, int status) {
    request->response.status = checked_status("set_status", status);
}

void add_header(request_t *request, const char *name, const char *value) {
    plugin_list_tuple2_string_list_u8_t *headers = &request->response.headers;
    headers->ptr = realloc(headers->ptr, (headers->len + 1) * sizeof *headers->ptr);
    if (headers->ptr == NULL) abort();
    // A value consists of bytes, which need not be UTF-8.
    size_t length = strlen(value);
    headers->ptr[headers->len++] = (plugin_tuple2_string_list_u8_t){
        string_of(name), {(uint8_t *)copy_of(value, length), length}};
}

// A second answer is a bug of the plugin; the host would also end the call because of it.
static void check_unanswered(request_t *request) {
    if (request->answered) {
        end_failed_call("the plugin answers `%s %s` twice", text_of(request->wit->method), text_of(request->wit->route));
    }
    request->answered = true;
}

// Hands the answer to the host. The exported function continues afterwards.
static void give(request_t *request, body_t body) {
    check_unanswered(request);
    request->response.body = body;
    exports_platform_supervisor_handler_result_response_error_t result = {.is_err = false, .val.ok = request->response};
    exports_platform_supervisor_handler_handle_return(result);
}

void answer(request_t *request, const char *content_type, const void *bytes, size_t length) {
    check_length("answer", length);
    add_header(request, "content-type", content_type);
    body_t body = {.tag = PLATFORM_SUPERVISOR_TYPES_BODY_BYTES, .val.bytes = {(uint8_t *)bytes, length}};
    give(request, body);
}

void answer_textf(request_t *request, const char *format, ...) {
    size_t length;
    va_list arguments;
    va_start(arguments, format);
    char *text = vformat(format, arguments, &length);
    va_end(arguments);
    answer(request, TEXT, text, length);
}

void answer_jsonf(request_t *request, const char *format, ...) {
    size_t length;
    va_list arguments;
    va_start(arguments, format);
    char *text = vformat(format, arguments, &length);
    va_end(arguments);
    answer(request, JSON, text, length);
}

void answer_errorf(request_t *request, int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    plugin_string_t text = vstring_of(format, arguments);
    va_end(arguments);
    check_unanswered(request);
    exports_platform_supervisor_handler_result_response_error_t result = {
        .is_err = true,
        .val.err = {checked_status("answer_errorf", status), string_of("plugin"), text},
    };
    exports_platform_supervisor_handler_handle_return(result);
}

stream_t *answer_stream(request_t *request, const char *content_type) {
    add_header(request, "content-type", content_type);
    body_t body = {.tag = PLATFORM_SUPERVISOR_TYPES_BODY_STREAM};
    body.val.stream = BODY_STREAM(new)(&request->stream.writer);
    request->streaming = true;
    give(request, body);
    return &request->stream;
}

void answer_forwarded(request_t *request, const char *content_type, uint32_t stream) {
    add_header(request, "content-type", content_type);
    body_t body = {.tag = PLATFORM_SUPERVISOR_TYPES_BODY_STREAM};
    body.val.stream = stream;
    give(request, body);
}

bool stream_write(stream_t *stream, const void *bytes, size_t length) {
    check_length("stream_write", length);
    const uint8_t *at = bytes;
    while (length > 0 && !stream->reader_left) {
        plugin_waitable_status_t status =
            finished(stream->writer, BODY_STREAM(write)(stream->writer, at, length));
        stream->reader_left = PLUGIN_WAITABLE_STATE(status) != PLUGIN_WAITABLE_COMPLETED;
        at += PLUGIN_WAITABLE_COUNT(status);
        length -= PLUGIN_WAITABLE_COUNT(status);
    }
    return length == 0;
}

bool stream_writef(stream_t *stream, const char *format, ...) {
    size_t length;
    va_list arguments;
    va_start(arguments, format);
    char *text = vformat(format, arguments, &length);
    va_end(arguments);
    bool is_written = stream_write(stream, text, length);
    free(text);
    return is_written;
}

static void log_line(platform_supervisor_log_level_t level, const char *format, va_list arguments) {
    plugin_string_t line = vstring_of(format, arguments);
    platform_supervisor_log_write(level, &line);
    free(line.ptr);
}

void logf_info(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log_line(PLATFORM_SUPERVISOR_LOG_LEVEL_INFO, format, arguments);
    va_end(arguments);
}

void logf_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log_line(PLATFORM_SUPERVISOR_LOG_LEVEL_ERROR, format, arguments);
    va_end(arguments);
}

// ---- What the component exports

// Constructors run in the order of the files in the build's command, so those of the plugin have run before.
__attribute__((constructor)) static void constructed(void) {
    refuse_clocks();
}

plugin_callback_code_t exports_platform_supervisor_handler_handle(exports_platform_supervisor_handler_request_t *wit) {
    request_t request = {.wit = wit, .response.status = 200};
    for (size_t index = 0; index < routes_count; index++) {
        if (text_is(wit->method, routes[index].method) && text_is(wit->route, routes[index].path)) {
            routes[index].handler(&request);
            if (!request.answered) give(&request, (body_t){.tag = PLATFORM_SUPERVISOR_TYPES_BODY_EMPTY});
            if (request.streaming) BODY_STREAM(drop_writable)(request.stream.writer);
            return PLUGIN_CALLBACK_CODE_EXIT;
        }
    }
    abort(); // The host calls only the routes of the manifest.
}

NO_CALLBACK(handler_handle)

// The C library closes, seeks and writes files when it ends. A plugin has none unless it asks for them, which the build says by
// this definition. These functions replace those of WASI, so the component does not import them.
#ifndef WITH_FILES
int32_t __imported_wasi_snapshot_preview1_fd_close(int32_t file) {
    (void)file;
    return 8; // EBADF
}

int32_t __imported_wasi_snapshot_preview1_fd_seek(int32_t file, int64_t offset, int32_t whence, int32_t position) {
    (void)file, (void)offset, (void)whence, (void)position;
    return 8;
}

int32_t __imported_wasi_snapshot_preview1_fd_write(int32_t file, int32_t pieces, int32_t count, int32_t written) {
    (void)file, (void)pieces, (void)count, (void)written;
    return 8;
}
#endif
