// Package timer waits. It needs no capability.
package timer

import (
	"math"
	"time"

	wit "supervisor/imports/platform_supervisor_timer"
)

// Sleep returns after a duration, in whole milliseconds and at most 49 days. The time counts towards the plugin's
// wall-time limit, but not towards its CPU limit. The call's other goroutines wait too.
func Sleep(duration time.Duration) {
	wit.Sleep(uint32(min(max(duration.Milliseconds(), 0), math.MaxUint32)))
}
