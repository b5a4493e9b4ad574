// The build adds this file to Go's package runtime, in place of a function of the same name, if the plugin does not ask for
// a clock.
package runtime

import "unsafe"

// beforeIdle is called when all goroutines wait. If one of them waits for a time, as time.Sleep does, then that time would
// never come, and the scheduler would end the call with a message that nobody sees. A panic is not possible here.
func beforeIdle(_, nextTimer int64) (*g, bool) {
	const message = "the plugin waits for a clock of Go, such as that of time.Sleep, without asking for it: use `timer.Sleep` of the package `supervisor/timer`, or add `clock = \"why\"` to [capabilities] of plugin.toml"
	if nextTimer != 0 {
		const levelError = 4
		supervisorLog(levelError, unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)))
		throw("there is no clock")
	}
	return nil, false
}

//go:wasmimport platform:supervisor/log@1.4.0 write
//go:noescape
func supervisorLog(level uint32, message unsafe.Pointer, length uint32)
