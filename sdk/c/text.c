#include "text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor.h"

void *allocate(size_t length) {
    void *memory = calloc(length ? length : 1, 1);
    if (memory == NULL) abort();
    return memory;
}

void check_length(const char *function, size_t length) {
    if (length <= PTRDIFF_MAX) return;
    end_failed_call("`%s` is called with the length %td: check what a function returns before you pass it on as a length",
                    function, (ptrdiff_t)length);
}

char *copy_of(const void *bytes, size_t length) {
    char *copy = allocate(length + 1);
    memcpy(copy, bytes, length);
    return copy;
}

char *vformat(const char *format, va_list arguments, size_t *length) {
    va_list again;
    va_copy(again, arguments);
    int count = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (count < 0) abort();
    char *text = allocate((size_t)count + 1);
    vsnprintf(text, (size_t)count + 1, format, arguments);
    *length = (size_t)count;
    return text;
}

// Returns the length of the character at the beginning of the bytes, of which there is at least one; 0 if they are not
// UTF-8, or are a zero.
static size_t character_length(const uint8_t *bytes, size_t length) {
    uint8_t first = bytes[0];
    if (first < 0x80) return first != 0;
    size_t count = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (count == 0 || count > length) return 0;
    // Excludes overlong forms, halves of surrogate pairs, and code points above U+10FFFF.
    uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (bytes[1] < least || bytes[1] > most) return 0;
    for (size_t index = 2; index < count; index++) {
        if ((bytes[index] & 0xc0) != 0x80) return 0;
    }
    return count;
}

plugin_string_t valid_text(const char *bytes, size_t length) {
    const uint8_t *from = (const uint8_t *)bytes;
    uint8_t *text = allocate(3 * length + 1), *to = text;
    while (length > 0) {
        size_t count = character_length(from, length);
        if (count > 0) {
            memcpy(to, from, count);
            to += count;
        } else {
            count = 1;
            memcpy(to, "\xef\xbf\xbd", 3);
            to += 3;
        }
        from += count;
        length -= count;
    }
    return (plugin_string_t){text, (size_t)(to - text)};
}

plugin_string_t vstring_of(const char *format, va_list arguments) {
    size_t length;
    char *bytes = vformat(format, arguments, &length);
    plugin_string_t text = valid_text(bytes, length);
    free(bytes);
    return text;
}

bool text_is(plugin_string_t text, const char *other) {
    return text.len == strlen(other) && memcmp(text.ptr, other, text.len) == 0;
}

char *text_of(plugin_string_t text) {
    return copy_of(text.ptr, text.len);
}

plugin_string_t string_of(const char *text) {
    return valid_text(text, strlen(text));
}

char *json_escaped(const char *text) {
    char *escaped = allocate(6 * strlen(text) + 1), *at = escaped;
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            *at++ = '\\';
            *at++ = (char)byte;
        } else if (byte < 0x20) {
            at += sprintf(at, "\\u%04x", byte);
        } else {
            *at++ = (char)byte;
        }
    }
    return escaped;
}
