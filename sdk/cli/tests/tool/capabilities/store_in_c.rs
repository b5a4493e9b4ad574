//! The store of a plugin in C, by `store.h`.

use crate::author::Author;
use crate::languages::can_build;

const SOURCE: &str = r#"
static store_value_t doubled(store_value_t value, void *context) {
    const char *separator = context;
    return store_textf("%s%s%s", value.bytes, separator, value.bytes);
}

static void fail(request_t *request) {
    answer_errorf(request, 500, "%s", store_error());
}

void keep(request_t *request) {
    store_value_t missing, brief, after, gone, none = {NULL, 0};
    const char *const *keys;
    size_t count;
    bool is_stale, is_set, is_removed;
    if (!store_get("rail-5v", &missing) || !store_set("rail-5v", store_textf("on")) ||
        !store_set_for("rail-12v", store_textf("%d", 12), 60000) || !store_get("rail-12v", &brief) ||
        !store_compare_and_set("rail-5v", store_textf("off"), store_textf("never"), &is_stale) ||
        !store_compare_and_set("rail-3v", none, store_textf("new"), &is_set) ||
        !store_compare_and_set("rail-3v", store_textf("new"), none, &is_removed) ||
        !store_update("rail-5v", doubled, "+", &after) || !store_keys("rail-", &keys, &count)) {
        fail(request);
        return;
    }
    // The time until a deadline that has passed.
    bool is_late = store_set_for("rail-5v", store_textf("late"), -1);
    const char *late = is_late ? "" : store_error();
    // What a function returns that has failed.
    store_value_t negative = {"x", (size_t)-1};
    bool is_odd = store_set("rail-5v", negative) || store_set_for("rail-5v", negative, 1000) ||
                  store_compare_and_set("rail-5v", after, negative, &is_stale) ||
                  store_compare_and_set("rail-5v", negative, after, &is_stale);
    const char *odd = is_odd ? "" : store_error();
    bool is_listed = count == 2 && strcmp(keys[0], "rail-12v") == 0 && strcmp(keys[1], "rail-5v") == 0;
    if (!store_set("empty", store_textf("%s", "")) || !store_get("empty", &gone)) {
        fail(request);
        return;
    }
    bool is_empty = gone.bytes != NULL && gone.length == 0;
    if (!store_delete("rail-5v") || !store_delete("rail-5v") || !store_get("rail-5v", &gone)) {
        fail(request);
        return;
    }
    answer_jsonf(request,
                 "{\"missing\":%d,\"brief\":\"%s\",\"compared\":\"%d%d%d\",\"after\":\"%s\",\"late\":\"%s\",\"odd\":\"%s\","
                 "\"listed\":%d,\"empty\":%d,\"gone\":%d}",
                 missing.bytes == NULL, brief.bytes, is_stale, is_set, is_removed, after.bytes, late, odd, is_listed,
                 is_empty, gone.bytes == NULL);
}

void keep_too_much(request_t *request) {
    static char large[64 * 1024 + 1];
    bool is_kept = store_set("large", (store_value_t){large, sizeof large});
    answer_errorf(request, is_kept ? 500 : 413, "%s", store_error());
}
"#;

const STEPS: &str = r#"
[[request]]
get = "/v3/keep"
answer = { status = 200, json = { missing = 1, brief = "12", compared = "011", after = "on+on", late = "failed to set `rail-5v`: its lifetime of -1 ms is negative", odd = "failed to set `rail-5v`: the length -1 of a value is negative", listed = 1, empty = 1, gone = 1 } }

[[request]]
get = "/v3/keep-too-much"
answer = { status = 413, json = { status = "failed", message = "a value of 65537 bytes is over the limit of 65536" } }
"#;

#[test]
fn a_plugin_in_c_keeps_values_and_learns_why_the_store_refuses_one() {
    if !can_build("c") {
        return;
    }
    let author = Author::with_project("c");
    author.append(
        "rails/src/plugin.c",
        &format!("\n#include <string.h>\n{SOURCE}"),
    );
    author.edit(
        "rails/plugin.toml",
        "[routes]\n",
        "[routes]\n\"GET /v3/keep\" = \"keep\"\n\"GET /v3/keep-too-much\" = \"keep_too_much\"\n",
    );
    author.write("rails/test/hello.toml", STEPS);
    let passed = author.run_in("rails", "test").succeeds();
    assert!(passed.out.contains("2 passed, 0 failed"), "{}", passed.out);
}
