// Updates of an operating system that has two places to boot from, for a plugin whose `plugin.toml` names a constant:
//
//     [provides]
//     os-update = "slots"
//
// The constant has the functions that do it, all of them, and is not `static`:
//
//     #include "os_update.h"
//
//     static os_status_result_t status(void) {
//         return os_status((os_status_t){.running = "2026.3.1", .committed = true});
//     }
//
//     const os_updater_t slots = {
//         .status = status, .stage = stage, .activate = activate, .commit = commit, .roll_back = roll_back};
//
// Only the device calls them, each in a fresh instance. It decides when each step happens, may repeat it, and keeps the
// necessary state across reboots: docs/os-update.md. People read the message of an error in the device's plan, events and log.
#ifndef SUPERVISOR_OS_UPDATE_H
#define SUPERVISOR_OS_UPDATE_H

#include "supervisor.h"
#include "unit_result.h"

// The status of the operating system.
typedef struct {
    // The running version: up to 128 letters, digits and `.`, `-`, `+`, `_` or `~`.
    const char *running;
    // Whether the running version stays: false from its first boot until `commit`.
    bool committed;
    // The version that is completely installed in the other place, whether or not the next boot starts it; NULL if there is
    // none.
    const char *staged;
    // The progress of an installation, from 0 to 100, for example `&(uint8_t){7}`; NULL if none is running.
    const uint8_t *installing;
    // The reason why the last installation failed; NULL if it did not.
    const char *failure;
} os_status_t;

typedef exports_platform_supervisor_os_update_result_os_status_string_t os_status_result_t;
typedef unit_result_t os_result_t;

// The functions of a provider.
typedef struct {
    // Returns the status, without changing anything.
    os_status_result_t (*status)(void);
    // Begins to install `version` from `source` (an `https://` address or an absolute path) into the place that is not
    // running, and returns: `status` reports the progress. Does nothing if that is already in progress, and does not change
    // what the next boot starts.
    os_result_t (*stage)(const char *source, const char *version);
    // Makes the next boot start the staged version.
    os_result_t (*activate)(void);
    // Makes each later boot start the running version, and ends its trial.
    os_result_t (*commit)(void);
    // Makes the next boot start the predecessor of the uncommitted version: before the first boot of that version this is
    // the running version, after it the version that ran before.
    os_result_t (*roll_back)(void);
} os_updater_t;

// The status as the result of `status`.
os_status_result_t os_status(os_status_t status);
// The status cannot be read; the message says what could not be read.
os_status_result_t os_status_errorf(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The step has been done.
os_result_t os_done(void);
// The step cannot be done; the message says why.
os_result_t os_errorf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The constant that `plugin.toml` names; the build defines this.
extern const os_updater_t *const os_updater;

#endif
