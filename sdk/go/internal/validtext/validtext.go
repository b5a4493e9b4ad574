// Package validtext prepares texts for the device, which accepts only UTF-8: a call that passes anything else ends as a
// failure of the plugin, even if the bytes are its caller's.
package validtext

import "strings"

// Of returns the text with U+FFFD for bytes that are not UTF-8.
func Of(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// All returns the texts, each with U+FFFD for bytes that are not UTF-8.
func All(texts []string) []string {
	valid := []string{}
	for _, text := range texts {
		valid = append(valid, Of(text))
	}
	return valid
}
