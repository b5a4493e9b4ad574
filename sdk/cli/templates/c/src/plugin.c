// A plugin. plugin.toml says which routes it answers and what it needs, and names the functions in this file.
#include <stdlib.h>

#include "store.h"
#include "supervisor.h"

// Each call runs in a fresh instance, so lasting data belongs in the store.
static store_value_t one_more(store_value_t value, void *context) {
    unsigned long *count = context;
    *count = (value.bytes != NULL ? strtoul(value.bytes, NULL, 10) : 0) + 1;
    return store_textf("%lu", *count);
}

void hello(request_t *request) {
    unsigned long count;
    // No call is lost: `one_more` is called again if another call was faster.
    if (!store_update("count", one_more, &count, NULL)) {
        answer_errorf(request, 500, "the calls cannot be counted: %s", store_error());
        return;
    }
    answer_textf(request, "Hello, %s! This is call %lu.\n", param(request, "name"), count);
}
