// Package log writes to the supervisor's log. It needs no capability. A message is cut at 4 KiB; after 100 lines in one
// call the rest are counted and not written.
package log

import (
	"fmt"

	wit "supervisor/imports/platform_supervisor_log"
	"supervisor/internal/validtext"
)

// Debug writes detail for people who are looking for a fault.
func Debug(values ...any) { write(wit.LevelDebug, values) }

// Info writes information for the owner of the device.
func Info(values ...any) { write(wit.LevelInfo, values) }

// Infof writes formatted text.
func Infof(format string, values ...any) { Info(fmt.Sprintf(format, values...)) }

// Warn reports a problem in spite of which the plugin continues.
func Warn(values ...any) { write(wit.LevelWarn, values) }

// Error reports a failure.
func Error(values ...any) { write(wit.LevelError, values) }

func write(level wit.Level, values []any) { wit.Write(level, validtext.Of(fmt.Sprint(values...))) }
