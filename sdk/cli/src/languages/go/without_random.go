// The build compiles this in place of Go's own file of this package if the plugin does not ask for random numbers.
package sysrand

func read([]byte) error {
	// The caller ends the program if it gets an error, and a plugin has nowhere to show the message then. The SDK logs a
	// panic.
	panic("the plugin uses random numbers without asking for them: add `random = \"why\"` to [capabilities] of plugin.toml")
}
