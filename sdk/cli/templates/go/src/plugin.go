// A plugin: plugin.toml says what it answers and needs, and names the functions here.
package main

import (
	"strconv"

	"supervisor"
	"supervisor/store"
)

func hello(r *supervisor.Request) (*supervisor.Response, error) {
	// Each call runs in a fresh instance, so what must last is in the store.
	count, err := store.Update("count", func(before []byte) []byte {
		count, _ := strconv.Atoi(string(before))
		return []byte(strconv.Itoa(count + 1))
	})
	if err != nil {
		return nil, err
	}
	return supervisor.Textf("Hello, %s! This is call %s.\n", r.Param("name"), count), nil
}
