// Greets, counts its calls and streams: the example of a plugin in C.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"
#include "supervisor.h"

// Adds one to the counter, which is kept as decimal digits.
static store_value_t one_more(store_value_t value, void *context) {
    unsigned long *calls = context;
    *calls = (value.bytes != NULL ? strtoul(value.bytes, NULL, 10) : 0) + 1;
    return store_textf("%lu", *calls);
}

void hello(request_t *request) {
    const char *name = param(request, "name");
    const char *language = query(request, "language");
    const char *greeting = "Hello";
    if (language != NULL && strcmp(language, "fr") == 0) {
        greeting = "Salut";
    } else if (language != NULL && strcmp(language, "en") != 0) {
        answer_errorf(request, 404, "there is no greeting in `%s`", language);
        return;
    }
    unsigned long calls;
    if (!store_update("calls", one_more, &calls, NULL)) {
        answer_errorf(request, 500, "the calls cannot be counted: %s", store_error());
        return;
    }
    logf_info("%s is greeted", name);
    answer_jsonf(request, "{\"greeting\":\"%s, %s!\",\"calls\":%lu}", greeting, json_escaped(name), calls);
}

// Streams: each piece goes to the caller as soon as it is written.
void countdown(request_t *request) {
    long seconds;
    if (!query_long(request, "seconds", 0, 60, 3, &seconds)) return;
    stream_t *out = answer_stream(request, TEXT);
    for (; seconds > 0; seconds--) {
        if (!stream_writef(out, "%ld\n", seconds)) return;
        platform_supervisor_timer_sleep(1000);
    }
    stream_writef(out, "Hello, %s!\n", param(request, "name"));
}

// Streams both ways: answers in capitals while the request is still arriving.
void shout(request_t *request) {
    stream_t *out = answer_stream(request, TEXT);
    const uint8_t *piece;
    for (size_t length; (length = body_chunk(request, &piece)) > 0;) {
        uint8_t *capitals = malloc(length);
        for (size_t at = 0; at < length; at++) capitals[at] = (uint8_t)toupper(piece[at]);
        bool is_written = stream_write(out, capitals, length);
        free(capitals);
        if (!is_written) return;
    }
}
