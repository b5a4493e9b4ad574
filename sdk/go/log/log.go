// Package log writes to the supervisor's log. It needs no capability. A message is cut at 4 KiB; after 100 lines in one
// call the rest are counted and not written.
package log

import (
	"fmt"

	wit "supervisor/imports/platform_supervisor_log"
)

// Debug writes detail for those who look for a fault.
func Debug(values ...any) { wit.Write(wit.LevelDebug, fmt.Sprint(values...)) }

// Info writes what the owner of a device may want to know.
func Info(values ...any) { wit.Write(wit.LevelInfo, fmt.Sprint(values...)) }

// Infof writes formatted text.
func Infof(format string, values ...any) { Info(fmt.Sprintf(format, values...)) }

// Warn says that something is not as it should be; the plugin goes on.
func Warn(values ...any) { wit.Write(wit.LevelWarn, fmt.Sprint(values...)) }

// Error says that something failed.
func Error(values ...any) { wit.Write(wit.LevelError, fmt.Sprint(values...)) }
