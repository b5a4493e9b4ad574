// A plugin. plugin.toml says which routes it answers and what it needs, and names the functions in this file.
package main

import (
	"strconv"

	"supervisor"
	"supervisor/store"
)

func hello(r *supervisor.Request) (*supervisor.Response, error) {
	// Each call runs in a fresh instance, so lasting data belongs in the store.
	count, err := store.Update("count", func(before []byte) []byte {
		count, _ := strconv.Atoi(string(before))
		return []byte(strconv.Itoa(count + 1))
	})
	if err != nil {
		return nil, err
	}
	return supervisor.Textf("Hello, %s! This is call %s.\n", r.Param("name"), count), nil
}
