// A plugin: plugin.toml says what it answers and needs, and names the functions here.
#include <string.h>

#include "supervisor.h"

// Each call runs in a fresh instance, so what must last is in the store.
static bool count_call(unsigned *count) {
    platform_supervisor_store_store_error_t error;
    plugin_string_t key = string_of("count");
    bool is_set = false;
    while (!is_set) {
        plugin_option_list_u8_t before;
        if (!platform_supervisor_store_get(&key, &before, &error)) return false;
        *count = 0;
        if (before.is_some && before.val.len == sizeof *count) memcpy(count, before.val.ptr, sizeof *count);
        *count += 1;
        plugin_list_u8_t after = {(uint8_t *)count, sizeof *count};
        // Sets nothing if another call was faster.
        if (!platform_supervisor_store_compare_and_set(&key, before.is_some ? &before.val : NULL, &after, NULL, &is_set,
                                                       &error)) {
            return false;
        }
    }
    return true;
}

void hello(request_t *request) {
    unsigned count;
    if (!count_call(&count)) {
        answer_errorf(request, 500, "the calls cannot be counted");
        return;
    }
    answer_textf(request, "Hello, %s! This is call %u.\n", param(request, "name"), count);
}
