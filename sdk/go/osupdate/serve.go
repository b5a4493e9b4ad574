package osupdate

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"
	wit "supervisor/imports/platform_supervisor_os_update"
	"supervisor/internal/panics"
	"supervisor/internal/validtext"
)

var provider Provider

// Serve sets the provider. Used by the file that the build writes from plugin.toml.
func Serve(value Provider) {
	provider = value
}

// HandleStatus returns the provider's status. This function and those below are used by the package that the component
// exports.
func HandleStatus() witTypes.Result[wit.OsStatus, string] {
	defer panics.Log()
	status, err := provider.Status()
	if err != nil {
		return witTypes.Err[wit.OsStatus, string](validtext.Of(err.Error()))
	}
	installing := witTypes.None[uint8]()
	if status.Installing != nil {
		installing = witTypes.Some(*status.Installing)
	}
	return witTypes.Ok[wit.OsStatus, string](wit.OsStatus{
		Running:    validtext.Of(status.Running),
		Staged:     option(status.Staged),
		Committed:  status.Committed,
		Installing: installing,
		Failure:    option(status.Failure),
	})
}

// HandleStage stages a version.
func HandleStage(source, version string) witTypes.Result[witTypes.Unit, string] {
	return perform(func() error { return provider.Stage(source, version) })
}

// HandleActivate activates the staged version.
func HandleActivate() witTypes.Result[witTypes.Unit, string] { return perform(provider.Activate) }

// HandleCommit commits the running version.
func HandleCommit() witTypes.Result[witTypes.Unit, string] { return perform(provider.Commit) }

// HandleRollBack rolls back the uncommitted version.
func HandleRollBack() witTypes.Result[witTypes.Unit, string] { return perform(provider.RollBack) }

func perform(step func() error) witTypes.Result[witTypes.Unit, string] {
	defer panics.Log()
	if err := step(); err != nil {
		return witTypes.Err[witTypes.Unit, string](validtext.Of(err.Error()))
	}
	return witTypes.Ok[witTypes.Unit, string](witTypes.Unit{})
}

func option(text string) witTypes.Option[string] {
	if text == "" {
		return witTypes.None[string]()
	}
	return witTypes.Some(validtext.Of(text))
}
