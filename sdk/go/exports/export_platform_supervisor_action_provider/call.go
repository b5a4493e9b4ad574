// Package export_platform_supervisor_action_provider has the component's exports, where the generated bindings expect
// them.
package export_platform_supervisor_action_provider

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor/provider"
)

func Call(name string, input []uint8) witTypes.Result[[]uint8, string] {
	return provider.Handle(name, input)
}
