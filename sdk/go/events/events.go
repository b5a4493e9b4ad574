// Package events is for plugins that are called for events on the device, which they request with events and
// [schedules] in plugin.toml. The function that events in [provides] names receives a value of one of the types of
// events:
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
// Its answer matters only for UpdateGate and HealthGate. An error is for the supervisor's log; after a gate has failed,
// the device asks it again a minute later.
package events

import "encoding/json"

// Event is one of the types below.
type Event interface{ isEvent() }

// Start says that the supervisor has started, or that this version of the plugin was installed. IsFirstOfBoot says
// whether this is the supervisor's first start since the device booted.
type Start struct{ IsFirstOfBoot bool }

// Schedule says that a schedule of plugin.toml is due.
type Schedule struct{ Name string }

// Services says that the states of services have changed.
type Services struct{ Changes []ServiceChange }

// ServiceChange has the state of a service now, and when the plugin was last called, in the words of
// GET /v2/state/status. A state is empty if the service does not exist.
type ServiceChange struct {
	AppID          uint64
	Service        string
	Status, Before string
}

// Target says how far the device is with applying its target.
type Target struct{ Progress Progress }

// Progress is the device's progress towards its target.
type Progress string

const (
	Applying Progress = "applying" // The device has begun to apply its target.
	Reached  Progress = "reached"  // Everything matches the target.
	Stopped  Progress = "stopped"  // The device has stopped, and not everything matches the target.
)

// Connection says whether the device can reach its cloud.
type Connection struct{ IsConnected bool }

// UpdateGate asks whether this app may be disturbed now.
type UpdateGate struct {
	AppID         uint64
	AppUUID       string
	Services      []string // The services that would be stopped, restarted or removed.
	RunningCommit string   // Empty if no release is running completely.
	TargetCommit  string   // Empty if the app will be removed.
}

// HealthGate asks whether this release, which was installed a short while ago, is healthy. All of its services run, and
// those with a health check pass it.
type HealthGate struct {
	AppID    uint64
	AppUUID  string
	Services []string
	Commit   string
}

// Later is an event that a later version of the interface defines.
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
