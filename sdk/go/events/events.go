// Package events is for plugins that are called when something happens on the device, as events and [schedules] of
// plugin.toml ask for it. The function that events in [provides] names gets one of the types of events:
//
//	func watch(event events.Event) (events.Answer, error) {
//		switch event := event.(type) {
//		case events.UpdateGate:
//			if slices.Contains(event.Services, "press") {
//				return events.Postpone(time.Minute, "the press is running"), nil
//			}
//		}
//		return events.GoOn, nil
//	}
//
// What it answers counts for UpdateGate and HealthGate alone. An error is for the supervisor's log; a gate that fails is
// asked again a minute later.
package events

import "encoding/json"

// Event is one of the types below.
type Event interface{ isEvent() }

// Start says that the supervisor has started, or that this version of the plugin was installed. It is the first of a boot if
// the supervisor has started for the first time since the device booted.
type Start struct{ IsFirstOfBoot bool }

// Schedule says that a schedule of plugin.toml is due.
type Schedule struct{ Name string }

// Services says that the states of services have changed.
type Services struct{ Changes []ServiceChange }

// ServiceChange is the state of a service, and what it was when the plugin was last called, in the words of
// GET /v2/state/status. They are empty if there is nothing of the service.
type ServiceChange struct {
	AppID          uint64
	Service        string
	Status, Before string
}

// Target says how the device stands to its target.
type Target struct{ Progress Progress }

// Progress is how the device stands to its target.
type Progress string

const (
	Applying Progress = "applying" // It has begun to apply it.
	Reached  Progress = "reached"  // Everything is as the target says.
	Stopped  Progress = "stopped"  // It has stopped, and not everything is as the target says.
)

// Connection says whether the device reaches its cloud.
type Connection struct{ IsConnected bool }

// UpdateGate asks whether this app may be disturbed now.
type UpdateGate struct {
	AppID         uint64
	AppUUID       string
	Services      []string // Those that would be stopped, started anew or removed.
	RunningCommit string   // Empty if no release runs whole.
	TargetCommit  string   // Empty if the app is to be removed.
}

// HealthGate asks whether this release, which was installed a short while ago, is healthy. All of its services run and pass
// their health checks.
type HealthGate struct {
	AppID    uint64
	AppUUID  string
	Services []string
	Commit   string
}

// Later is an event of a later version of the interface.
type Later struct {
	Name string
	Data json.RawMessage
}

func (Start) isEvent()      {}
func (Schedule) isEvent()   {}
func (Services) isEvent()   {}
func (Target) isEvent()     {}
func (Connection) isEvent() {}
func (UpdateGate) isEvent() {}
func (HealthGate) isEvent() {}
func (Later) isEvent()      {}
