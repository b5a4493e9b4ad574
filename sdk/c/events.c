// Compiled into plugins that are called for events.
#include "events.h"

#include "no_callback.h"

event_answer_t go_on(void) {
    return (event_answer_t){.val.ok.tag = EXPORTS_PLATFORM_SUPERVISOR_EVENTS_ANSWER_GO_ON};
}

event_answer_t postponef(int64_t seconds, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    event_answer_t answer = {.val.ok.tag = EXPORTS_PLATFORM_SUPERVISOR_EVENTS_ANSWER_POSTPONE};
    answer.val.ok.val.postpone.reason = vstring_of(format, arguments);
    // The number for the interface has 32 bits and no sign.
    answer.val.ok.val.postpone.seconds = seconds < 0 ? 0 : seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
    va_end(arguments);
    return answer;
}

event_answer_t refusef(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    event_answer_t answer = {.val.ok.tag = EXPORTS_PLATFORM_SUPERVISOR_EVENTS_ANSWER_REFUSE};
    answer.val.ok.val.refuse = vstring_of(format, arguments);
    va_end(arguments);
    return answer;
}

event_answer_t failedf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    event_answer_t answer = {.is_err = true, .val.err = vstring_of(format, arguments)};
    va_end(arguments);
    return answer;
}

bool has_service(plugin_list_string_t services, const char *name) {
    for (size_t index = 0; index < services.len; index++) {
        if (text_is(services.ptr[index], name)) return true;
    }
    return false;
}

plugin_callback_code_t exports_platform_supervisor_events_handle(event_t *event) {
    exports_platform_supervisor_events_handle_return(handle_event(event));
    return PLUGIN_CALLBACK_CODE_EXIT;
}

NO_CALLBACK(events_handle)
