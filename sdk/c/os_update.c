// Compiled into plugins that update the operating system.
#include "os_update.h"

#include <stdlib.h>

#include "no_callback.h"

static plugin_option_string_t option_of(const char *text) {
    plugin_option_string_t option = {.is_some = text != NULL};
    if (text != NULL) option.val = string_of(text);
    return option;
}

os_status_result_t os_status(os_status_t status) {
    os_status_result_t result = {.is_err = false};
    result.val.ok.running = string_of(status.running);
    result.val.ok.staged = option_of(status.staged);
    result.val.ok.committed = status.committed;
    result.val.ok.installing.is_some = status.installing != NULL;
    if (status.installing != NULL) result.val.ok.installing.val = *status.installing;
    result.val.ok.failure = option_of(status.failure);
    return result;
}

os_status_result_t os_status_errorf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    os_status_result_t result = {.is_err = true, .val.err = vstring_of(format, arguments)};
    va_end(arguments);
    return result;
}

os_result_t os_done(void) {
    return (os_result_t){.is_err = false};
}

os_result_t os_errorf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    os_result_t result = {.is_err = true, .val.err = vstring_of(format, arguments)};
    va_end(arguments);
    return result;
}

// Ends the call if the plugin has left out a function.
static void require(bool exists, const char *name) {
    if (exists) return;
    logf_error("the constant that provides `os-update` has no function `%s`: set it", name);
    abort();
}

plugin_callback_code_t exports_platform_supervisor_os_update_status(void) {
    require(os_updater->status != NULL, "status");
    exports_platform_supervisor_os_update_status_return(os_updater->status());
    return PLUGIN_CALLBACK_CODE_EXIT;
}

plugin_callback_code_t exports_platform_supervisor_os_update_stage(plugin_string_t *source, plugin_string_t *version) {
    require(os_updater->stage != NULL, "stage");
    exports_platform_supervisor_os_update_stage_return(os_updater->stage(text_of(*source), text_of(*version)));
    return PLUGIN_CALLBACK_CODE_EXIT;
}

plugin_callback_code_t exports_platform_supervisor_os_update_activate(void) {
    require(os_updater->activate != NULL, "activate");
    exports_platform_supervisor_os_update_activate_return(os_updater->activate());
    return PLUGIN_CALLBACK_CODE_EXIT;
}

plugin_callback_code_t exports_platform_supervisor_os_update_commit(void) {
    require(os_updater->commit != NULL, "commit");
    exports_platform_supervisor_os_update_commit_return(os_updater->commit());
    return PLUGIN_CALLBACK_CODE_EXIT;
}

plugin_callback_code_t exports_platform_supervisor_os_update_roll_back(void) {
    require(os_updater->roll_back != NULL, "roll_back");
    exports_platform_supervisor_os_update_roll_back_return(os_updater->roll_back());
    return PLUGIN_CALLBACK_CODE_EXIT;
}

NO_CALLBACK(os_update_status)
NO_CALLBACK(os_update_stage)
NO_CALLBACK(os_update_activate)
NO_CALLBACK(os_update_commit)
NO_CALLBACK(os_update_roll_back)
