package events

import (
	"encoding/json"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	wit "supervisor/imports/platform_supervisor_events"
	"supervisor/internal/panics"
	"supervisor/internal/validtext"
)

// Watcher is called for events.
type Watcher func(Event) (Answer, error)

var watcher Watcher

// Serve sets the function that is called for events. Used by the file that the build writes from plugin.toml.
func Serve(function Watcher) {
	watcher = function
}

// Handle serves one event. Used by the package that the component exports.
func Handle(event wit.Event) witTypes.Result[wit.Answer, string] {
	defer panics.Log()
	answer, err := watcher(eventOf(event))
	if err != nil {
		return witTypes.Err[wit.Answer, string](validtext.Of(err.Error()))
	}
	return witTypes.Ok[wit.Answer, string](answer.wit)
}

func eventOf(event wit.Event) Event {
	switch event.Tag() {
	case wit.EventStart:
		return Start{event.Start()}
	case wit.EventSchedule:
		return Schedule{event.Schedule()}
	case wit.EventServices:
		changes := []ServiceChange{}
		for _, change := range event.Services() {
			status, before := change.Status.SomeOr(""), change.Before.SomeOr("")
			changes = append(changes, ServiceChange{change.AppId, change.Service, status, before})
		}
		return Services{changes}
	case wit.EventTarget:
		return Target{[]Progress{Applying, Reached, Stopped}[event.Target()]}
	case wit.EventConnection:
		return Connection{event.Connection()}
	case wit.EventUpdateGate:
		update := event.UpdateGate()
		running, target := update.RunningCommit.SomeOr(""), update.TargetCommit.SomeOr("")
		return UpdateGate{update.AppId, update.AppUuid, update.Services, running, target}
	case wit.EventHealthGate:
		release := event.HealthGate()
		return HealthGate{release.AppId, release.AppUuid, release.Services, release.Commit}
	default:
		later := event.Later()
		return Later{later.Name, json.RawMessage(later.Data)}
	}
}
