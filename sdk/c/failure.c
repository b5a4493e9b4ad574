#include "failure.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "supervisor.h"

_Noreturn void end_failed_call(const char *format, ...) {
    // Writing the text allocates memory, which may be what fails.
    static bool is_ending = false;
    if (!is_ending) {
        is_ending = true;
        va_list arguments;
        va_start(arguments, format);
        plugin_string_t line = vstring_of(format, arguments);
        va_end(arguments);
        platform_supervisor_log_write(PLATFORM_SUPERVISOR_LOG_LEVEL_ERROR, &line);
    }
    __builtin_trap();
}

_Noreturn void abort_call_at(const char *file, int line, const char *function) {
    end_failed_call("`abort` is called in `%s` (%s:%d)", function, file, line);
}

// The functions below replace those of the C library and of WASI, which end the call without a reason.

// Called by files that do not include `supervisor.h`.
#undef abort
_Noreturn void abort(void) {
    end_failed_call("`abort` is called");
}

_Noreturn void __assert_fail(const char *expression, const char *file, int line, const char *function) {
    end_failed_call("the assertion `%s` is false in `%s` (%s:%d)", expression, function, file, line);
}

_Noreturn void __imported_wasi_snapshot_preview1_proc_exit(int32_t status) {
    end_failed_call("the plugin ended itself with status %d; return an error instead", (int)status);
}

// The build says by this definition that the plugin asks for a clock.
#ifndef WITH_CLOCK
#define ENOSYS_OF_WASI 52

static bool is_serving = false;

void refuse_clocks(void) {
    is_serving = true;
}

// Constructors, of which the C library also has one, read a clock that stands still.
int32_t __imported_wasi_snapshot_preview1_clock_time_get(int32_t clock, int64_t precision, int32_t into) {
    (void)clock, (void)precision;
    if (is_serving) {
        end_failed_call(
            "the plugin reads a clock without asking for it: add `clock = \"why\"` to [capabilities] of plugin.toml");
    }
    *(uint64_t *)(uintptr_t)into = 1000000;
    return 0;
}

int32_t __imported_wasi_snapshot_preview1_poll_oneoff(int32_t subscriptions, int32_t events, int32_t count, int32_t into) {
    (void)subscriptions, (void)events, (void)count, (void)into;
    if (is_serving) {
        end_failed_call(
            "the plugin waits for a clock, such as that of `sleep`, without asking for it: use "
            "`platform_supervisor_timer_sleep`, which needs no capability, or add `clock = \"why\"` to [capabilities] of "
            "plugin.toml");
    }
    return ENOSYS_OF_WASI;
}
#else
void refuse_clocks(void) {}
#endif
