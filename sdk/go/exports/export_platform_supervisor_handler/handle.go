// Package export_platform_supervisor_handler has the component's exports, where the generated bindings expect them.
package export_platform_supervisor_handler

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor"
	wit "supervisor/imports/platform_supervisor_types"
)

func Handle(request wit.Request) witTypes.Result[wit.Response, wit.Error] {
	return supervisor.Handle(request)
}
