// Package osupdate is for plugins that update an operating system that has two places to boot from: the action os-update,
// which only the device calls. A provider is a type that os-update in [provides] of plugin.toml names:
//
//	type Slots struct{}
//
//	func (Slots) Status() (osupdate.Status, error) {
//		return osupdate.Status{Running: "2026.3.1", Committed: true}, nil
//	}
//
//	func (Slots) Stage(source, version string) error { return nil }
//	func (Slots) Activate() error                    { return nil }
//	func (Slots) Commit() error                      { return nil }
//	func (Slots) RollBack() error                    { return nil }
//
// The device decides when each step happens, and keeps the necessary state across reboots. Each call runs in a fresh
// instance of the plugin. docs/os-update.md describes the whole sequence. People read the text of an error in the device's
// plan, events and log.
package osupdate

// Status is the status of the operating system.
type Status struct {
	Running    string // The running version: up to 128 letters, digits and `.`, `-`, `+`, `_` or `~`.
	Committed  bool   // Whether the running version stays: false from its first boot until Commit.
	Staged     string // The version that is completely installed in the other place, whether or not the next boot starts it. Empty if there is none.
	Installing *uint8 // The progress of an installation, from 0 to 100, as Percent returns it; nil if none is running.
	Failure    string // The reason why the last installation failed. Empty if it did not.
}

// Percent returns the progress of an installation, from 0 to 100, for a Status.
func Percent(progress uint8) *uint8 { return &progress }

// Provider is what a plugin implements. Each method may be called more than once, and must have the same result then.
type Provider interface {
	// Status returns the status, without changing anything.
	Status() (Status, error)
	// Stage begins to install version from source (an https:// address or an absolute path) into the place that is not
	// running. It returns once the installation has begun: Status reports its progress. It does nothing if that is already
	// in progress, and does not change what the next boot starts.
	Stage(source, version string) error
	// Activate makes the next boot start the staged version.
	Activate() error
	// Commit makes each later boot start the running version, and ends its trial.
	Commit() error
	// RollBack makes the next boot start the predecessor of the uncommitted version: before the first boot of that version
	// this is the running version, after it the version that ran before.
	RollBack() error
}
