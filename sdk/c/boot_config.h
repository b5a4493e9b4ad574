// The boot configuration of a family of boards, for a plugin whose `plugin.toml` names a constant:
//
//     [provides]
//     boot-config = "firmware"
//
// The constant has the functions that read and write it, all of them, and is not `static`:
//
//     #include "boot_config.h"
//
//     static boot_settings_result_t get(void) {
//         static const boot_setting_t settings[] = {{.name = "HOST_CONFIG_gpu_mem", .value = "64"}};
//         return boot_settings(settings, 1);
//     }
//
//     static boot_comparison_result_t compare(const boot_setting_t *target, size_t count) {
//         ...
//         return boot_comparison((boot_comparison_t){.changes = changes, .changes_count = 1, .needs_reboot = true});
//     }
//
//     const boot_configurator_t firmware = {.get = get, .compare = compare, .set = set};
//
// Only the device calls them, each in a fresh instance, for the variables `HOST_*` of its target. It compares when the
// target changes and after a start. If something differs, it calls `set`, and reboots once the update locks of all apps
// allow it. It may repeat each call. People read the message of an error.
#ifndef SUPERVISOR_BOOT_CONFIG_H
#define SUPERVISOR_BOOT_CONFIG_H

#include "supervisor.h"

// A variable of the target without the cloud's prefix, such as `HOST_CONFIG_gpu_mem`.
typedef struct {
    const char *name;
    const char *value;
} boot_setting_t;

// A setting that cannot be written.
typedef struct {
    const char *name;
    // What is wrong with it, without its name.
    const char *reason;
} boot_refusal_t;

// How the configuration differs from a target.
typedef struct {
    // The names of the settings that differ: those to write, and those that were written before and are no longer in
    // the target.
    const char *const *changes;
    size_t changes_count;
    // The settings that cannot be written. If there is one, nothing is written.
    const boot_refusal_t *refused;
    size_t refused_count;
    // The names of the settings that mean nothing on this board.
    const char *const *foreign;
    size_t foreign_count;
    // Whether the changes take effect only at the next boot.
    bool needs_reboot;
} boot_comparison_t;

typedef exports_platform_supervisor_boot_config_result_list_setting_string_t boot_settings_result_t;
typedef exports_platform_supervisor_boot_config_result_comparison_string_t boot_comparison_result_t;

// The functions of a provider.
typedef struct {
    // Returns the settings of the next boot, restricted to those that apply to all boards of the kind.
    boot_settings_result_t (*get)(void);
    // Compares the configuration with `count` settings, without changing anything.
    boot_comparison_result_t (*compare)(const boot_setting_t *target, size_t count);
    // Writes the settings that differ, all of them or none, and keeps a copy of the previous configuration. Writes
    // nothing if the comparison refuses a setting. Returns the comparison from before the change.
    boot_comparison_result_t (*set)(const boot_setting_t *target, size_t count);
} boot_configurator_t;

// These settings as the result of `get`.
boot_settings_result_t boot_settings(const boot_setting_t *settings, size_t count);
// The configuration cannot be read; the message says what could not be read.
boot_settings_result_t boot_settings_errorf(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The comparison as the result of `compare` or `set`.
boot_comparison_result_t boot_comparison(boot_comparison_t comparison);
// The configuration cannot be read or written; the message says why.
boot_comparison_result_t boot_comparison_errorf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The constant that `plugin.toml` names; the build defines this.
extern const boot_configurator_t *const boot_config_provider;

#endif
