// The end of a call that the plugin cannot finish.
#ifndef SUPERVISOR_FAILURE_H
#define SUPERVISOR_FAILURE_H

#include <stdlib.h>

// Logs why the call fails, which the device keeps as the reason, and ends the call.
_Noreturn void end_failed_call(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Ends the call like `abort`, and says where.
_Noreturn void abort_call_at(const char *file, int line, const char *function);

// Refuses clocks from now on, unless the plugin asks for them.
void refuse_clocks(void);

// A call of `abort` names its place. With arguments it is a call of something else, such as a member of a struct.
#define SUPERVISOR_SECOND(first, second, ...) second
#define abort(...)                                                                                                       \
    SUPERVISOR_SECOND(__VA_OPT__(, ) abort(__VA_ARGS__), abort_call_at(__FILE__, __LINE__, __func__), )

#endif
