// Compiled into plugins that have actions of their own.
#include "action_provider.h"

#include <stdlib.h>

#include "no_callback.h"
#include "text.h"

output_t output_bytes(const void *bytes, size_t length) {
    check_length("output_bytes", length);
    return (output_t){.is_err = false, .val.ok = {(uint8_t *)bytes, length}};
}

output_t output_textf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t length;
    char *bytes = vformat(format, arguments, &length);
    va_end(arguments);
    return output_bytes(bytes, length);
}

output_t output_errorf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    output_t output = {.is_err = true, .val.err = vstring_of(format, arguments)};
    va_end(arguments);
    return output;
}

plugin_callback_code_t exports_platform_supervisor_action_provider_call(plugin_string_t *name, plugin_list_u8_t *input) {
    for (size_t index = 0; index < actions_count; index++) {
        if (text_is(*name, actions[index].name)) {
            // The copy has the zero at its end.
            const char *bytes = text_of((plugin_string_t){input->ptr, input->len});
            output_t output = actions[index].function((input_t){bytes, input->len});
            exports_platform_supervisor_action_provider_call_return(output);
            return PLUGIN_CALLBACK_CODE_EXIT;
        }
    }
    abort(); // The host calls only the actions of the manifest.
}

NO_CALLBACK(action_provider_call)
