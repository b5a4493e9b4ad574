// The plugin's own keys and values, which outlive its calls and restarts of the supervisor, for a plugin whose `plugin.toml`
// asks for the capability `store`:
//
//     #include "store.h"
//
//     store_value_t place;
//     if (!store_get("place", &place)) {
//         answer_errorf(request, 500, "%s", store_error());
//         return;
//     }
//     answer_textf(request, "%s\n", place.bytes != NULL ? place.bytes : "nowhere");
//
// Keys are at most 256 bytes, values at most 64 KiB, all of them together at most 1 MiB and 10,000 keys for one plugin.
// A function that returns false has changed nothing, and `store_error` says why.
#ifndef SUPERVISOR_STORE_H
#define SUPERVISOR_STORE_H

#include "supervisor.h"

// A value. `bytes` is NULL if the key does not exist. A zero that does not count follows the bytes of a value from the
// store, so that a text can be used as a string. The functions below refuse a value whose length was negative, such as -1,
// which `read` and `snprintf` return if they fail.
typedef struct {
    const char *bytes;
    size_t length;
} store_value_t;

// A formatted text as a value.
store_value_t store_textf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Reads the value of a key.
bool store_get(const char *key, store_value_t *value);
// Sets a key. The value has reached the disk when this returns.
bool store_set(const char *key, store_value_t value);
// Sets a key for so many milliseconds by the device's clock. After that the key no longer exists. A negative number, such
// as the time until a deadline that has passed, is refused: delete the key instead.
bool store_set_for(const char *key, store_value_t value, uint64_t milliseconds);
// Removes a key, if it exists.
bool store_delete(const char *key);
// Lists the keys that begin with `prefix`, sorted, in `*keys`, and how many there are in `*count`.
bool store_keys(const char *prefix, const char *const **keys, size_t *count);

// Sets a key, or removes it if `value` has no bytes, if the key has the value `expected` (no bytes: does not exist).
// `*is_set` says whether that was so; if it was not, nothing has changed.
bool store_compare_and_set(const char *key, store_value_t expected, store_value_t value, bool *is_set);
// Changes a value so that no change of another call at the same time is lost. `change` gets the value and returns the new
// one, or one without bytes to remove the key; `context` is passed on to it. If another call has changed the value in the
// meantime, `change` is called again.
// `*after` is the value that was set; it may be NULL.
bool store_update(const char *key, store_value_t (*change)(store_value_t value, void *context), void *context,
                  store_value_t *after);

// Why the last function that returned false did so, in a sentence that names the limit or the failure.
const char *store_error(void);

#endif
