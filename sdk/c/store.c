// Compiled into plugins that ask for the capability `store`.
#include "store.h"

#include <stdlib.h>

static const char *failure = "";

// Keeps why a function failed, for `store_error`. Both kinds of error are a text in the same place.
static bool done(bool is_done, platform_supervisor_store_store_error_t *error) {
    if (!is_done) failure = text_of(error->val.other);
    return is_done;
}

// Keeps why a value cannot be stored whose length was negative, such as -1, which `read` and `snprintf` return if they fail.
static bool has_length(const char *key, store_value_t value) {
    if (value.length <= PTRDIFF_MAX) return true;
    failure = store_textf("failed to set `%s`: the length %td of a value is negative", key, (ptrdiff_t)value.length).bytes;
    return false;
}

static plugin_list_u8_t list_of(store_value_t value) {
    return (plugin_list_u8_t){(uint8_t *)value.bytes, value.length};
}

store_value_t store_textf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t length;
    char *bytes = vformat(format, arguments, &length);
    va_end(arguments);
    return (store_value_t){bytes, length};
}

bool store_get(const char *key, store_value_t *value) {
    platform_supervisor_store_store_error_t error;
    plugin_string_t name = string_of(key);
    plugin_option_list_u8_t found;
    *value = (store_value_t){NULL, 0};
    if (!done(platform_supervisor_store_get(&name, &found, &error), &error)) return false;
    if (found.is_some) {
        *value = (store_value_t){text_of((plugin_string_t){found.val.ptr, found.val.len}), found.val.len};
    }
    return true;
}

bool store_set(const char *key, store_value_t value) {
    if (!has_length(key, value)) return false;
    platform_supervisor_store_store_error_t error;
    plugin_string_t name = string_of(key);
    plugin_list_u8_t list = list_of(value);
    return done(platform_supervisor_store_set(&name, &list, &error), &error);
}

bool store_set_for(const char *key, store_value_t value, uint64_t milliseconds) {
    // What was negative would be a lifetime of centuries.
    if (milliseconds > INT64_MAX) {
        failure = store_textf("failed to set `%s`: its lifetime of %lld ms is negative", key, (long long)milliseconds).bytes;
        return false;
    }
    if (!has_length(key, value)) return false;
    platform_supervisor_store_store_error_t error;
    plugin_string_t name = string_of(key);
    plugin_list_u8_t list = list_of(value);
    return done(platform_supervisor_store_set_for(&name, &list, milliseconds, &error), &error);
}

bool store_delete(const char *key) {
    platform_supervisor_store_store_error_t error;
    plugin_string_t name = string_of(key);
    return done(platform_supervisor_store_delete(&name, &error), &error);
}

bool store_keys(const char *prefix, const char *const **keys, size_t *count) {
    platform_supervisor_store_store_error_t error;
    plugin_string_t beginning = string_of(prefix);
    plugin_list_string_t found;
    if (!done(platform_supervisor_store_keys(&beginning, &found, &error), &error)) return false;
    const char **list = malloc((found.len + 1) * sizeof *list);
    if (list == NULL) abort(); // The plugin is out of memory, which the supervisor reports.
    for (size_t index = 0; index < found.len; index++) list[index] = text_of(found.ptr[index]);
    list[found.len] = NULL;
    *keys = list;
    *count = found.len;
    return true;
}

bool store_compare_and_set(const char *key, store_value_t expected, store_value_t value, bool *is_set) {
    if (!has_length(key, expected) || !has_length(key, value)) return false;
    platform_supervisor_store_store_error_t error;
    plugin_string_t name = string_of(key);
    plugin_list_u8_t before = list_of(expected), after = list_of(value);
    return done(platform_supervisor_store_compare_and_set(&name, expected.bytes != NULL ? &before : NULL,
                                                          value.bytes != NULL ? &after : NULL, NULL, is_set, &error),
                &error);
}

bool store_update(const char *key, store_value_t (*change)(store_value_t value, void *context), void *context,
                  store_value_t *after) {
    for (bool is_set = false; !is_set;) {
        store_value_t before;
        if (!store_get(key, &before)) return false;
        store_value_t value = change(before, context);
        if (!store_compare_and_set(key, before, value, &is_set)) return false;
        if (after != NULL) *after = value;
    }
    return true;
}

const char *store_error(void) {
    return failure;
}
