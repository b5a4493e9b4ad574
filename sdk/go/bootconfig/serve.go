package bootconfig

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"
	wit "supervisor/imports/platform_supervisor_boot_config"
	"supervisor/internal/panics"
	"supervisor/internal/validtext"
)

var provider Provider

// Serve sets the provider. Used by the file that the build writes from plugin.toml.
func Serve(value Provider) {
	provider = value
}

// HandleGet returns the settings of the next boot. This function and those below are used by the package that the
// component exports.
func HandleGet() witTypes.Result[[]wit.Setting, string] {
	defer panics.Log()
	settings, err := provider.Get()
	if err != nil {
		return witTypes.Err[[]wit.Setting, string](validtext.Of(err.Error()))
	}
	found := []wit.Setting{}
	for _, setting := range settings {
		found = append(found, wit.Setting{Name: validtext.Of(setting.Name), Value: validtext.Of(setting.Value)})
	}
	return witTypes.Ok[[]wit.Setting, string](found)
}

// HandleCompare compares the configuration with a target.
func HandleCompare(target []wit.Setting) witTypes.Result[wit.Comparison, string] {
	defer panics.Log()
	return result(provider.Compare(settingsOf(target)))
}

// HandleSet writes a target.
func HandleSet(target []wit.Setting) witTypes.Result[wit.Comparison, string] {
	defer panics.Log()
	return result(provider.Set(settingsOf(target)))
}

func settingsOf(settings []wit.Setting) []Setting {
	target := []Setting{}
	for _, setting := range settings {
		target = append(target, Setting{setting.Name, setting.Value})
	}
	return target
}

func result(comparison Comparison, err error) witTypes.Result[wit.Comparison, string] {
	if err != nil {
		return witTypes.Err[wit.Comparison, string](validtext.Of(err.Error()))
	}
	refused := []wit.Refusal{}
	for _, refusal := range comparison.Refused {
		refused = append(refused, wit.Refusal{Name: validtext.Of(refusal.Name), Reason: validtext.Of(refusal.Reason)})
	}
	return witTypes.Ok[wit.Comparison, string](wit.Comparison{
		Changes:     validtext.All(comparison.Changes),
		Refused:     refused,
		Foreign:     validtext.All(comparison.Foreign),
		NeedsReboot: comparison.NeedsReboot,
	})
}
