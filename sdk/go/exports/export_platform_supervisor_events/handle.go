// Package export_platform_supervisor_events has the component's exports, where the generated bindings expect them.
package export_platform_supervisor_events

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor/events"
	wit "supervisor/imports/platform_supervisor_events"
)

func Handle(event wit.Event) witTypes.Result[wit.Answer, string] {
	return events.Handle(event)
}
