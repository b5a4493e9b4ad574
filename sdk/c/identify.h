// Shows which device this is, for a plugin whose `plugin.toml` names a function:
//
//     [provides]
//     identify = "blink"
//
// The function shows a pattern until nothing is left of the time, and then returns; the device ends it soon after:
//
//     #include "identify.h"
//
//     identify_result_t blink(void) {
//         plugin_string_t lamp = string_of("lamp");
//         for (bool on = true; identify_remaining_ms() > 0; on = !on) {
//             platform_supervisor_gpio_gpio_error_t refused;
//             if (!platform_supervisor_gpio_write(&lamp, on, &refused)) return identify_errorf("the lamp was not switched");
//             platform_supervisor_timer_sleep(250);
//         }
//         return identify_done();
//     }
//
// To make the device identify itself, ask for the capability `identify` instead, whose function is
// `platform_supervisor_identify_identify`.
#ifndef SUPERVISOR_IDENTIFY_H
#define SUPERVISOR_IDENTIFY_H

#include "supervisor.h"
#include "unit_result.h"

typedef unit_result_t identify_result_t;

// Returns how many milliseconds are left. Call it at each step of the pattern, since a second request extends the time.
uint32_t identify_remaining_ms(void);
// The pattern was shown until nothing was left of the time.
identify_result_t identify_done(void);
// The device cannot be shown; the message says why.
identify_result_t identify_errorf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The function that `plugin.toml` names; the build defines this.
identify_result_t identify_provider(void);

#endif
