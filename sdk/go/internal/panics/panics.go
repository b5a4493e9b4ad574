// Package panics writes panics to the supervisor's log.
package panics

import (
	"fmt"
	"runtime/debug"

	"supervisor/log"
)

// Log logs a panic before it ends the call, because Go's own message about it goes nowhere. Defer it.
func Log() {
	if problem := recover(); problem != nil {
		log.Error(fmt.Sprintf("panic: %v\n%s", problem, debug.Stack()))
		panic(problem)
	}
}
