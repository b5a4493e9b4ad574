// Compiled into plugins that configure the program that sends connections through a proxy.
#include "proxy_redirector.h"

#include <stdlib.h>

#include "no_callback.h"
#include "text.h"

typedef platform_supervisor_proxy_types_proxy_error_t proxy_error_t;
typedef platform_supervisor_proxy_types_redirection_t wit_redirection_t;

static plugin_option_string_t option_of(const char *text) {
    plugin_option_string_t option = {.is_some = text != NULL};
    if (text != NULL) option.val = string_of(text);
    return option;
}

static const char *text_or_null(plugin_option_string_t option) {
    return option.is_some ? text_of(option.val) : NULL;
}

// The case `unavailable` means that there is no provider.
static proxy_error_t failure(const char *format, va_list arguments) {
    plugin_string_t text = vstring_of(format, arguments);
    return (proxy_error_t){.tag = PLATFORM_SUPERVISOR_PROXY_TYPES_PROXY_ERROR_OTHER, .val.other = text};
}

proxy_state_result_t proxy_direct(void) {
    proxy_state_result_t result = {.is_err = false};
    result.val.ok.tag = PLATFORM_SUPERVISOR_PROXY_TYPES_PROXY_STATE_DIRECT;
    return result;
}

proxy_state_result_t proxy_unusablef(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    proxy_state_result_t result = {.is_err = false};
    result.val.ok.tag = PLATFORM_SUPERVISOR_PROXY_TYPES_PROXY_STATE_UNUSABLE;
    result.val.ok.val.unusable = vstring_of(format, arguments);
    va_end(arguments);
    return result;
}

proxy_state_result_t proxy_redirected(redirection_t redirection) {
    wit_redirection_t redirected = {
        .proxy = {
            .kind = (platform_supervisor_proxy_types_proxy_kind_t)redirection.kind,
            .address = string_of(redirection.address),
            .port = redirection.port,
            .login = option_of(redirection.login),
            .password = option_of(redirection.password),
        },
    };
    redirected.dns.is_some = redirection.dns_address != NULL;
    if (redirection.dns_address != NULL) {
        redirected.dns.val.address = string_of(redirection.dns_address);
        redirected.dns.val.port = redirection.dns_port;
    }
    proxy_state_result_t result = {.is_err = false};
    result.val.ok.tag = PLATFORM_SUPERVISOR_PROXY_TYPES_PROXY_STATE_REDIRECTED;
    result.val.ok.val.redirected = redirected;
    return result;
}

proxy_state_result_t proxy_state_errorf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    proxy_state_result_t result = {.is_err = true, .val.err = failure(format, arguments)};
    va_end(arguments);
    return result;
}

proxy_addresses_result_t proxy_addresses(const char *const *addresses, size_t count) {
    check_length("proxy_addresses", count);
    plugin_string_t *strings = allocate(count * sizeof *strings);
    for (size_t index = 0; index < count; index++) strings[index] = string_of(addresses[index]);
    return (proxy_addresses_result_t){.is_err = false, .val.ok = {strings, count}};
}

proxy_addresses_result_t proxy_addresses_errorf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    proxy_addresses_result_t result = {.is_err = true, .val.err = failure(format, arguments)};
    va_end(arguments);
    return result;
}

proxy_result_t proxy_done(void) {
    return (proxy_result_t){.is_err = false};
}

proxy_result_t proxy_invalidf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    proxy_error_t invalid = {.tag = PLATFORM_SUPERVISOR_PROXY_TYPES_PROXY_ERROR_INVALID};
    invalid.val.invalid = vstring_of(format, arguments);
    va_end(arguments);
    return (proxy_result_t){.is_err = true, .val.err = invalid};
}

proxy_result_t proxy_errorf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    proxy_result_t result = {.is_err = true, .val.err = failure(format, arguments)};
    va_end(arguments);
    return result;
}

// Ends the call if the plugin has left out a function.
static void require(bool exists, const char *name) {
    if (exists) return;
    logf_error("the constant that provides `proxy-redirector` has no function `%s`: set it", name);
    abort();
}

plugin_callback_code_t exports_platform_supervisor_proxy_redirector_get(void) {
    require(proxy_provider->get != NULL, "get");
    exports_platform_supervisor_proxy_redirector_get_return(proxy_provider->get());
    return PLUGIN_CALLBACK_CODE_EXIT;
}

plugin_callback_code_t exports_platform_supervisor_proxy_redirector_set(wit_redirection_t *target) {
    require(proxy_provider->set != NULL, "set");
    redirection_t redirection;
    if (target != NULL) {
        const platform_supervisor_proxy_types_proxy_t *proxy = &target->proxy;
        redirection = (redirection_t){
            .kind = (proxy_kind_t)proxy->kind,
            .address = text_of(proxy->address),
            .port = proxy->port,
            .login = text_or_null(proxy->login),
            .password = text_or_null(proxy->password),
        };
        if (target->dns.is_some) {
            redirection.dns_address = text_of(target->dns.val.address);
            redirection.dns_port = target->dns.val.port;
        }
    }
    proxy_result_t result = proxy_provider->set(target != NULL ? &redirection : NULL);
    exports_platform_supervisor_proxy_redirector_set_return(result);
    return PLUGIN_CALLBACK_CODE_EXIT;
}

plugin_callback_code_t exports_platform_supervisor_proxy_redirector_no_proxy(void) {
    require(proxy_provider->no_proxy != NULL, "no_proxy");
    exports_platform_supervisor_proxy_redirector_no_proxy_return(proxy_provider->no_proxy());
    return PLUGIN_CALLBACK_CODE_EXIT;
}

plugin_callback_code_t exports_platform_supervisor_proxy_redirector_set_no_proxy(plugin_list_string_t *addresses) {
    require(proxy_provider->set_no_proxy != NULL, "set_no_proxy");
    const char **texts = allocate(addresses->len * sizeof *texts);
    for (size_t index = 0; index < addresses->len; index++) texts[index] = text_of(addresses->ptr[index]);
    proxy_result_t result = proxy_provider->set_no_proxy(texts, addresses->len);
    exports_platform_supervisor_proxy_redirector_set_no_proxy_return(result);
    return PLUGIN_CALLBACK_CODE_EXIT;
}

plugin_callback_code_t exports_platform_supervisor_proxy_redirector_apply(void) {
    require(proxy_provider->apply != NULL, "apply");
    exports_platform_supervisor_proxy_redirector_apply_return(proxy_provider->apply());
    return PLUGIN_CALLBACK_CODE_EXIT;
}

NO_CALLBACK(proxy_redirector_get)
NO_CALLBACK(proxy_redirector_set)
NO_CALLBACK(proxy_redirector_no_proxy)
NO_CALLBACK(proxy_redirector_set_no_proxy)
NO_CALLBACK(proxy_redirector_apply)
