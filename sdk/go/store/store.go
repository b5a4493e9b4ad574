// Package store keeps the plugin's own keys and values, which survive restarts of the supervisor. Capability store.
//
// Keys are at most 256 bytes, values at most 64 KiB, all of them together at most 1 MiB and 10,000 keys for one plugin.
package store

import (
	"fmt"
	"time"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor"
	wit "supervisor/imports/platform_supervisor_store"
)

// Get reads a value; nil if there is none.
func Get(key string) ([]byte, error) {
	found, err := outcome(wit.Get(key))
	if err != nil || found.IsNone() {
		return nil, err
	}
	return found.Some(), nil
}

// Set sets a value. The write has reached the disk when this returns.
func Set(key string, value []byte) error {
	_, err := outcome(wit.Set(key, value))
	return err
}

// SetFor sets a value for this long by the device's clock; after that the key no longer exists. A negative lifetime, such
// as the time until a deadline that has passed, is an error: delete the key instead.
func SetFor(key string, value []byte, lifetime time.Duration) error {
	// The number for the interface has no sign, so that it would be a lifetime of centuries.
	if lifetime < 0 {
		return fmt.Errorf("failed to set `%s`: its lifetime of %v is negative", key, lifetime)
	}
	_, err := outcome(wit.SetFor(key, value, uint64(lifetime.Milliseconds())))
	return err
}

// CompareAndSet sets a value, or removes it if value is nil, but only if the key has the expected value (nil: does not
// exist). It returns whether it did.
func CompareAndSet(key string, expected, value []byte) (bool, error) {
	return outcome(wit.CompareAndSet(key, option(expected), option(value), witTypes.None[uint64]()))
}

// Update changes a value without losing changes that other calls make at the same time: change receives the value, and
// returns the new one; nil stands for a missing key. It is called again if the value has changed in the meantime.
// Update returns the value that was set.
func Update(key string, change func(value []byte) []byte) ([]byte, error) {
	for {
		before, err := Get(key)
		if err != nil {
			return nil, err
		}
		after := change(before)
		if done, err := CompareAndSet(key, before, after); done || err != nil {
			return after, err
		}
	}
}

// Delete removes a key; a missing one is not an error.
func Delete(key string) error {
	_, err := outcome(wit.Delete(key))
	return err
}

// Keys lists the keys that begin with prefix, sorted.
func Keys(prefix string) ([]string, error) {
	return outcome(wit.Keys(prefix))
}

func option(value []byte) witTypes.Option[[]byte] {
	if value == nil {
		return witTypes.None[[]byte]()
	}
	return witTypes.Some(value)
}

func outcome[T any](result witTypes.Result[T, wit.StoreError]) (value T, err error) {
	if result.IsOk() {
		return result.Ok(), nil
	}
	refused := result.Err()
	if refused.Tag() == wit.StoreErrorTooLarge {
		return value, supervisor.TooLarge("%s", refused.TooLarge())
	}
	return value, supervisor.Internal("%s", refused.Other())
}
