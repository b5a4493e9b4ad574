// Actions of the plugin's own, which other plugins call, for a plugin whose `plugin.toml` names a function for each:
//
//     [actions]
//     set = "set_rail"
//
// Each call runs in a fresh instance. A function takes the input and returns the output, at most 512 KiB each:
//
//     #include "action_provider.h"
//
//     output_t set_rail(input_t input) {
//         if (strcmp(input.bytes, "5v") != 0) return output_errorf("there is no rail `%s`", input.bytes);
//         return output_textf("true");
//     }
//
// Callers that use JSON, such as `actions.call_json` in Python, write the input and read the output as JSON.
#ifndef SUPERVISOR_ACTION_PROVIDER_H
#define SUPERVISOR_ACTION_PROVIDER_H

#include "supervisor.h"

// The input of an action. A zero that does not count follows the bytes, so that a text can be used as a string.
typedef struct {
    const char *bytes;
    size_t length;
} input_t;

typedef exports_platform_supervisor_action_provider_result_list_u8_string_t output_t;

// These bytes as the output, which must stay as they are until the function has returned.
output_t output_bytes(const void *bytes, size_t length);
// Formatted text as the output, for example JSON, in which `json_escaped` writes texts.
output_t output_textf(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The action is not performed. The caller receives the message, which says which input was wrong, and in what way.
output_t output_errorf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// An action of `plugin.toml`; the build writes the table of actions.
typedef struct {
    const char *name;
    output_t (*function)(input_t input);
} action_t;

extern const action_t actions[];
extern const size_t actions_count;

#endif
