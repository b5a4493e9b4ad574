// Package export_platform_supervisor_boot_config has the component's exports, where the generated bindings expect them.
package export_platform_supervisor_boot_config

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor/bootconfig"
	wit "supervisor/imports/platform_supervisor_boot_config"
)

func Get() witTypes.Result[[]wit.Setting, string] {
	return bootconfig.HandleGet()
}

func Compare(target []wit.Setting) witTypes.Result[wit.Comparison, string] {
	return bootconfig.HandleCompare(target)
}

func Set(target []wit.Setting) witTypes.Result[wit.Comparison, string] {
	return bootconfig.HandleSet(target)
}
