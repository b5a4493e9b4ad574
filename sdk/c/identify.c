// Compiled into plugins that show which device this is.
#include "identify.h"

#include "no_callback.h"

uint32_t identify_remaining_ms(void) {
    return platform_supervisor_identify_window_remaining_ms();
}

identify_result_t identify_done(void) {
    return (identify_result_t){.is_err = false};
}

identify_result_t identify_errorf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    identify_result_t result = {.is_err = true, .val.err = vstring_of(format, arguments)};
    va_end(arguments);
    return result;
}

plugin_callback_code_t exports_platform_supervisor_identify_identify(void) {
    exports_platform_supervisor_identify_identify_return(identify_provider());
    return PLUGIN_CALLBACK_CODE_EXIT;
}

NO_CALLBACK(identify_identify)
