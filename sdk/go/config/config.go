// Package config reads the table [plugins.NAME] of the supervisor's configuration file. It needs no capability.
package config

import (
	"encoding/json"

	wit "supervisor/imports/platform_supervisor_config"
)

// Read reads the configuration into a value; fields that the file does not set stay unchanged.
func Read(value any) error {
	return json.Unmarshal([]byte(wit.Json()), value)
}
