// Package bootconfig is for plugins that read and write the boot configuration of a family of boards: the action
// boot-config, which only the device calls, for the variables HOST_* of its target. A provider is a type that
// boot-config in [provides] of plugin.toml names:
//
//	type firmware struct{}
//
//	func (firmware) Get() ([]bootconfig.Setting, error) {
//		return []bootconfig.Setting{{Name: "HOST_CONFIG_gpu_mem", Value: "64"}}, nil
//	}
//
//	func (firmware) Compare(target []bootconfig.Setting) (bootconfig.Comparison, error) {
//		return bootconfig.Comparison{NeedsReboot: true}, nil
//	}
//
//	func (firmware) Set(target []bootconfig.Setting) (bootconfig.Comparison, error) {
//		return bootconfig.Comparison{NeedsReboot: true}, nil
//	}
//
// The device compares when its target changes and after a start. If something differs, it calls Set, and reboots once
// the update locks of all apps allow it. Each call runs in a fresh instance of the plugin. People read the text of an
// error.
package bootconfig

// Setting is a variable of the target without the cloud's prefix, such as HOST_CONFIG_gpu_mem.
type Setting struct{ Name, Value string }

// Refusal is a setting that cannot be written.
type Refusal struct {
	Name   string
	Reason string // What is wrong with it, without its name.
}

// Comparison is how the configuration differs from a target.
type Comparison struct {
	Changes     []string  // The names of the settings that differ: those to write, and those that were written before and are no longer in the target.
	Refused     []Refusal // The settings that cannot be written. If there is one, nothing is written.
	Foreign     []string  // The names of the settings that mean nothing on this board.
	NeedsReboot bool      // Whether the changes take effect only at the next boot.
}

// Provider is what a plugin implements. Each method may be called more than once, and must have the same result then.
type Provider interface {
	// Get returns the settings of the next boot, restricted to those that apply to all boards of the kind.
	Get() ([]Setting, error)
	// Compare compares the configuration with these settings, without changing anything.
	Compare(target []Setting) (Comparison, error)
	// Set writes the settings that differ, all of them or none, and keeps a copy of the previous configuration. It
	// writes nothing if the comparison refuses a setting. It returns the comparison from before the change.
	Set(target []Setting) (Comparison, error)
}
