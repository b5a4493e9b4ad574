// Compiled into plugins that read and write a boot configuration.
#include "boot_config.h"

#include <stdlib.h>

#include "no_callback.h"
#include "text.h"

typedef exports_platform_supervisor_boot_config_setting_t setting_t;
typedef exports_platform_supervisor_boot_config_refusal_t refusal_t;
typedef exports_platform_supervisor_boot_config_list_setting_t setting_list_t;

static plugin_list_string_t strings_of(const char *const *texts, size_t count) {
    check_length("boot_comparison", count);
    plugin_string_t *strings = allocate(count * sizeof *strings);
    for (size_t index = 0; index < count; index++) strings[index] = string_of(texts[index]);
    return (plugin_list_string_t){strings, count};
}

boot_settings_result_t boot_settings(const boot_setting_t *settings, size_t count) {
    check_length("boot_settings", count);
    setting_t *items = allocate(count * sizeof *items);
    for (size_t index = 0; index < count; index++) {
        items[index] = (setting_t){string_of(settings[index].name), string_of(settings[index].value)};
    }
    return (boot_settings_result_t){.is_err = false, .val.ok = {items, count}};
}

boot_settings_result_t boot_settings_errorf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    boot_settings_result_t result = {.is_err = true, .val.err = vstring_of(format, arguments)};
    va_end(arguments);
    return result;
}

boot_comparison_result_t boot_comparison(boot_comparison_t comparison) {
    check_length("boot_comparison", comparison.refused_count);
    refusal_t *refused = allocate(comparison.refused_count * sizeof *refused);
    for (size_t index = 0; index < comparison.refused_count; index++) {
        const boot_refusal_t *refusal = &comparison.refused[index];
        refused[index] = (refusal_t){string_of(refusal->name), string_of(refusal->reason)};
    }
    boot_comparison_result_t result = {.is_err = false};
    result.val.ok.changes = strings_of(comparison.changes, comparison.changes_count);
    result.val.ok.refused.ptr = refused;
    result.val.ok.refused.len = comparison.refused_count;
    result.val.ok.foreign = strings_of(comparison.foreign, comparison.foreign_count);
    result.val.ok.needs_reboot = comparison.needs_reboot;
    return result;
}

boot_comparison_result_t boot_comparison_errorf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    boot_comparison_result_t result = {.is_err = true, .val.err = vstring_of(format, arguments)};
    va_end(arguments);
    return result;
}

static const boot_setting_t *settings_of(const setting_list_t *list) {
    boot_setting_t *settings = allocate(list->len * sizeof *settings);
    for (size_t index = 0; index < list->len; index++) {
        settings[index] = (boot_setting_t){text_of(list->ptr[index].name), text_of(list->ptr[index].value)};
    }
    return settings;
}

// Ends the call if the plugin has left out a function.
static void require(bool exists, const char *name) {
    if (exists) return;
    logf_error("the constant that provides `boot-config` has no function `%s`: set it", name);
    abort();
}

plugin_callback_code_t exports_platform_supervisor_boot_config_get(void) {
    require(boot_config_provider->get != NULL, "get");
    exports_platform_supervisor_boot_config_get_return(boot_config_provider->get());
    return PLUGIN_CALLBACK_CODE_EXIT;
}

plugin_callback_code_t exports_platform_supervisor_boot_config_compare(setting_list_t *target) {
    require(boot_config_provider->compare != NULL, "compare");
    boot_comparison_result_t result = boot_config_provider->compare(settings_of(target), target->len);
    exports_platform_supervisor_boot_config_compare_return(result);
    return PLUGIN_CALLBACK_CODE_EXIT;
}

plugin_callback_code_t exports_platform_supervisor_boot_config_set(setting_list_t *target) {
    require(boot_config_provider->set != NULL, "set");
    boot_comparison_result_t result = boot_config_provider->set(settings_of(target), target->len);
    exports_platform_supervisor_boot_config_set_return(result);
    return PLUGIN_CALLBACK_CODE_EXIT;
}

NO_CALLBACK(boot_config_get)
NO_CALLBACK(boot_config_compare)
NO_CALLBACK(boot_config_set)
