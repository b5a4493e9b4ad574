// Package export_platform_supervisor_os_update has the component's exports, where the generated bindings expect them.
package export_platform_supervisor_os_update

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"
	wit "supervisor/imports/platform_supervisor_os_update"
	"supervisor/osupdate"
)

func Status() witTypes.Result[wit.OsStatus, string] {
	return osupdate.HandleStatus()
}

func Stage(source string, version string) witTypes.Result[witTypes.Unit, string] {
	return osupdate.HandleStage(source, version)
}

func Activate() witTypes.Result[witTypes.Unit, string] {
	return osupdate.HandleActivate()
}

func Commit() witTypes.Result[witTypes.Unit, string] {
	return osupdate.HandleCommit()
}

func RollBack() witTypes.Result[witTypes.Unit, string] {
	return osupdate.HandleRollBack()
}
