// Greets, counts its calls and streams: the example of a plugin in C.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor.h"

// Adds to the counter, beginning again if another call was faster. False if the store cannot do it.
static bool count_call(unsigned *calls) {
    platform_supervisor_store_store_error_t error;
    plugin_string_t key = string_of("calls");
    for (;;) {
        plugin_option_list_u8_t before;
        if (!platform_supervisor_store_get(&key, &before, &error)) return false;
        *calls = 1;
        if (before.is_some && before.val.len == sizeof *calls) {
            memcpy(calls, before.val.ptr, sizeof *calls);
            *calls += 1;
        }
        plugin_list_u8_t after = {(uint8_t *)calls, sizeof *calls};
        bool is_set;
        if (!platform_supervisor_store_compare_and_set(&key, before.is_some ? &before.val : NULL, &after, NULL, &is_set,
                                                       &error)) {
            return false;
        }
        if (is_set) return true;
    }
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
    unsigned calls;
    if (!count_call(&calls)) {
        answer_errorf(request, 500, "the calls cannot be counted");
        return;
    }
    logf_info("%s is greeted", name);
    answer_jsonf(request, "{\"greeting\":\"%s, %s!\",\"calls\":%u}", greeting, json_escaped(name), calls);
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
