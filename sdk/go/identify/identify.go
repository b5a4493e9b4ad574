// Package identify is for plugins that show which device this is: the action identify. A provider is a function that
// identify in [provides] of plugin.toml names. It shows a pattern until nothing is left of the time, and then returns;
// the device ends it soon after:
//
//	func blink() error {
//		for on := true; identify.Remaining() > 0; on = !on {
//			if switched := gpio.Write("lamp", on); switched.IsErr() {
//				return fmt.Errorf("the lamp was not switched: %v", switched.Err())
//			}
//			timer.Sleep(250 * time.Millisecond)
//		}
//		return nil
//	}
//
// An error says why the device cannot be shown. To make the device identify itself, ask for the capability identify
// instead, whose package is supervisor/imports/platform_supervisor_identify.
package identify

import (
	"time"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	window "supervisor/imports/platform_supervisor_identify_window"
	"supervisor/internal/panics"
	"supervisor/internal/validtext"
)

var provider func() error

// Serve sets the function that shows which device this is. Used by the file that the build writes from plugin.toml.
func Serve(function func() error) {
	provider = function
}

// Remaining returns how much longer the device has to identify itself. Call it at each step of the pattern, since a
// second request extends the time.
func Remaining() time.Duration {
	return time.Duration(window.RemainingMs()) * time.Millisecond
}

// Handle shows the pattern. Used by the package that the component exports.
func Handle() witTypes.Result[witTypes.Unit, string] {
	defer panics.Log()
	if err := provider(); err != nil {
		return witTypes.Err[witTypes.Unit, string](validtext.Of(err.Error()))
	}
	return witTypes.Ok[witTypes.Unit, string](witTypes.Unit{})
}
