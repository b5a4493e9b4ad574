// Package export_platform_supervisor_identify has the component's export, where the generated bindings expect it.
package export_platform_supervisor_identify

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor/identify"
)

func Identify() witTypes.Result[witTypes.Unit, string] {
	return identify.Handle()
}
