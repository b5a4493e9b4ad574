// Package log writes to the supervisor's log. It needs no capability. A message is cut at 4 KiB; after 100 lines in one
// call the rest are counted and not written.
package log

import (
	"fmt"

	wit "supervisor/imports/platform_supervisor_log"
)

// Debug writes detail for people who are looking for a fault.
func Debug(values ...any) { wit.Write(wit.LevelDebug, fmt.Sprint(values...)) }

// Info writes information for the owner of the device.
func Info(values ...any) { wit.Write(wit.LevelInfo, fmt.Sprint(values...)) }

// Infof writes formatted text.
func Infof(format string, values ...any) { Info(fmt.Sprintf(format, values...)) }

// Warn reports a problem in spite of which the plugin continues.
func Warn(values ...any) { wit.Write(wit.LevelWarn, fmt.Sprint(values...)) }

// Error reports a failure.
func Error(values ...any) { wit.Write(wit.LevelError, fmt.Sprint(values...)) }
