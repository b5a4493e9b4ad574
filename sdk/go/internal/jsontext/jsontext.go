// Package jsontext reads JSON of a caller, who may be hostile.
package jsontext

import (
	"encoding/json"
	"fmt"
)

// Depth is how deep arrays and objects may be nested. The package encoding/json allows 10,000 levels, for which a plugin
// may not have the memory; the call would then end as a failure of the plugin.
const Depth = 128

// Unmarshal reads JSON into value. An error is either a *json.UnmarshalTypeError, or one whose text continues a sentence
// such as "the body ...".
func Unmarshal(text []byte, value any) error {
	if isTooDeep(text) {
		return fmt.Errorf("is nested more than %d deep", Depth)
	}
	err := json.Unmarshal(text, value)
	if wrong, ok := err.(*json.UnmarshalTypeError); ok && wrong.Field != "" {
		return wrong
	}
	if err != nil {
		return fmt.Errorf("is not JSON: %.200s", err)
	}
	return nil
}

func isTooDeep(text []byte) bool {
	depth := 0
	isInString := false
	for at := 0; at < len(text); at++ {
		switch char := text[at]; {
		case isInString && char == '\\':
			at++ // The next byte does not end the string.
		case char == '"':
			isInString = !isInString
		case isInString:
		case char == '[' || char == '{':
			depth++
			if depth > Depth {
				return true
			}
		case char == ']' || char == '}':
			depth--
		}
	}
	return false
}
