// Package provider performs the plugin's own actions, which other plugins call. [actions] in plugin.toml names a function
// for each:
//
//	type rail struct {
//		Name string `json:"name"`
//		On   bool   `json:"on"`
//	}
//
//	func setRail(rail rail) (bool, error) {
//		if rail.Name != "5v" {
//			return false, supervisor.NotFound("there is no rail `%s`", rail.Name)
//		}
//		return rail.On, nil
//	}
//
// A function takes the input and returns the output, at most 512 KiB each: []byte unchanged, and any other type as JSON.
// The caller receives the text of its error. Each call runs in a fresh instance.
package provider

import (
	"encoding/json"
	"fmt"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor"
	"supervisor/internal/jsontext"
	"supervisor/internal/panics"
	"supervisor/internal/validtext"
)

// Action performs an action.
type Action func(input []byte) ([]byte, error)

var actions map[string]Action

// Serve sets the functions that perform the plugin's own actions, by name. Used by the file that the build writes from
// plugin.toml.
func Serve(table map[string]Action) {
	actions = table
}

// ActionOf returns the action of a function. Used by the file that the build writes from plugin.toml.
func ActionOf[Input, Output any](function func(Input) (Output, error)) Action {
	return func(bytes []byte) ([]byte, error) {
		var input Input
		if raw, ok := any(&input).(*[]byte); ok {
			*raw = bytes
		} else if err := parse(bytes, &input); err != nil {
			return nil, err
		}
		output, err := function(input)
		if err != nil {
			return nil, err
		}
		if raw, ok := any(output).([]byte); ok {
			return raw, nil
		}
		text, err := json.Marshal(output)
		if err != nil {
			panic(fmt.Sprintf("failed to write the output: %v", err))
		}
		return text, nil
	}
}

// Handle performs one action. Used by the package that the component exports.
func Handle(name string, input []byte) witTypes.Result[[]byte, string] {
	defer panics.Log()
	output, err := actions[name](input)
	if err != nil {
		return witTypes.Err[[]byte, string](validtext.Of(err.Error()))
	}
	return witTypes.Ok[[]byte, string](output)
}

func parse(bytes []byte, input any) error {
	if len(bytes) == 0 {
		return supervisor.BadRequest("the input is missing: it must be JSON")
	}
	if err := jsontext.Unmarshal(bytes, input); err != nil {
		if wrong, ok := err.(*json.UnmarshalTypeError); ok {
			return supervisor.BadRequest("field `%s` of the input must be of the type %s, not a JSON %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return supervisor.BadRequest("the input %s", err)
	}
	return nil
}
