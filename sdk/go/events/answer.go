package events

import (
	"time"

	wit "supervisor/imports/platform_supervisor_events"
	"supervisor/internal/validtext"
)

// Answer is the answer to a gate.
type Answer struct{ wit wit.Answer }

// GoOn says that the app may be disturbed, or that the release is healthy. It is the answer to all events that are not
// gates.
var GoOn = Answer{wit.MakeAnswerGoOn()}

// Postpone says "not now": the device asks again after a time from 10 seconds to 15 minutes, and shows people the
// reason.
func Postpone(delay time.Duration, reason string) Answer {
	seconds := uint32(min(max(delay, 0), time.Hour) / time.Second)
	return Answer{wit.MakeAnswerPostpone(wit.Postponement{Reason: validtext.Of(reason), Seconds: seconds})}
}

// Refuse says that the release is not healthy and will not become so: the device goes back to the last healthy one. It
// is only an answer to HealthGate.
func Refuse(reason string) Answer {
	return Answer{wit.MakeAnswerRefuse(validtext.Of(reason))}
}
