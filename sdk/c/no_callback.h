// The callback of an exported function that is over when it returns to the host for the first time.
#ifndef SUPERVISOR_NO_CALLBACK_H
#define SUPERVISOR_NO_CALLBACK_H

#include <stdlib.h>

#include "supervisor.h"

// The interface and the function, such as `identify_identify`.
#define NO_CALLBACK(function)                                                                                            \
    plugin_callback_code_t exports_platform_supervisor_##function##_callback(plugin_event_t *event) {                    \
        (void)event;                                                                                                     \
        abort();                                                                                                         \
    }

#endif
