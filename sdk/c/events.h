// Events on the device, for a plugin whose `plugin.toml` lists events and names a function for them:
//
//     events = ["update-gate"]
//
//     [provides]
//     events = "watch"
//
// The function is called once for each event, in a fresh instance. Its return value matters only for gates:
//
//     #include "events.h"
//
//     event_answer_t watch(const event_t *event) {
//         if (event->tag == EVENT_UPDATE_GATE) return postponef(60, "the press is running");
//         return go_on();
//     }
#ifndef SUPERVISOR_EVENTS_H
#define SUPERVISOR_EVENTS_H

#include "supervisor.h"

// An event: `tag` says which, and the field of `val` with the name of the event has its data. `plugin.h` has the types
// and says what the fields mean.
typedef exports_platform_supervisor_events_event_t event_t;

#define EVENT_START EXPORTS_PLATFORM_SUPERVISOR_EVENTS_EVENT_START
#define EVENT_SCHEDULE EXPORTS_PLATFORM_SUPERVISOR_EVENTS_EVENT_SCHEDULE
#define EVENT_SERVICES EXPORTS_PLATFORM_SUPERVISOR_EVENTS_EVENT_SERVICES
#define EVENT_TARGET EXPORTS_PLATFORM_SUPERVISOR_EVENTS_EVENT_TARGET
#define EVENT_CONNECTION EXPORTS_PLATFORM_SUPERVISOR_EVENTS_EVENT_CONNECTION
#define EVENT_UPDATE_GATE EXPORTS_PLATFORM_SUPERVISOR_EVENTS_EVENT_UPDATE_GATE
#define EVENT_HEALTH_GATE EXPORTS_PLATFORM_SUPERVISOR_EVENTS_EVENT_HEALTH_GATE
#define EVENT_LATER EXPORTS_PLATFORM_SUPERVISOR_EVENTS_EVENT_LATER

// The change of one of the services of an `EVENT_SERVICES`.
typedef exports_platform_supervisor_events_service_change_t service_change_t;

// The device's progress towards its target.
#define TARGET_APPLYING EXPORTS_PLATFORM_SUPERVISOR_EVENTS_TARGET_PROGRESS_APPLYING
#define TARGET_REACHED EXPORTS_PLATFORM_SUPERVISOR_EVENTS_TARGET_PROGRESS_REACHED
#define TARGET_STOPPED EXPORTS_PLATFORM_SUPERVISOR_EVENTS_TARGET_PROGRESS_STOPPED

typedef exports_platform_supervisor_events_result_answer_string_t event_answer_t;

// The app may be disturbed; the release is healthy. Also the answer to all events that are not gates.
event_answer_t go_on(void);
// Not now: the device asks again after this many seconds, and shows people the reason. It waits at least 10 s, also if the
// number is negative, such as the time until a deadline that has passed, and at most 900 s.
event_answer_t postponef(int64_t seconds, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The release is not healthy and will not become so: the device goes back to the last healthy one. Only an answer to
// `EVENT_HEALTH_GATE`.
event_answer_t refusef(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The plugin failed; the reason is for the log. After a gate has failed, the device asks it again a minute later.
event_answer_t failedf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Returns whether one of the services of an `EVENT_UPDATE_GATE` or an `EVENT_HEALTH_GATE` has this name.
bool has_service(plugin_list_string_t services, const char *name);

// The function that `plugin.toml` names; the build defines this.
event_answer_t handle_event(const event_t *event);

#endif
