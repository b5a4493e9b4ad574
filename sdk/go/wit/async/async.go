// Package async waits for operations of the host. It replaces the package of the same name in
// go.bytecodealliance.org/pkg, which needs a change of Go's runtime to return to the host while goroutines wait. Here a
// waiting goroutine blocks the whole instance instead: that serves one call, so only the call's other goroutines wait
// too.
package async

import (
	"runtime"
	"unsafe"

	witRuntime "go.bytecodealliance.org/pkg/wit/runtime"
)

// The generated bindings and the package of streams use these names; the values are those of the canonical ABI.
const (
	RETURN_CODE_BLOCKED   uint32 = 0xFFFFFFFF
	RETURN_CODE_COMPLETED uint32 = 0
	RETURN_CODE_DROPPED   uint32 = 1

	STATUS_STARTING uint32 = 0
	STATUS_STARTED  uint32 = 1
	STATUS_RETURNED uint32 = 2

	callbackExit uint32 = 0
)

var afterwards []func()

// Afterwards makes a function run after the call has returned its result, to write the body of a stream.
func Afterwards(function func()) {
	afterwards = append(afterwards, function)
}

// Run runs a call until it has returned its result, and then the functions of Afterwards.
func Run(call func()) uint32 {
	call()
	for len(afterwards) > 0 {
		next := afterwards[0]
		afterwards = afterwards[1:]
		next()
	}
	return callbackExit
}

// Callback is exported because the ABI requires it. The host has no reason to call it: no call returns before it is
// over.
func Callback(uint32, uint32, uint32) uint32 {
	panic("a call that is over is called back")
}

// SubtaskWait waits for the end of an import that was called asynchronously.
func SubtaskWait(status uint32) {
	subtask := status >> 4
	status &= 0xF
	for status != STATUS_RETURNED {
		status = wait(subtask)
	}
	if subtask != 0 {
		subtaskDrop(subtask)
	}
}

// FutureOrStreamWait waits for the end of a read or a write, and returns its outcome and the number of items.
func FutureOrStreamWait(code uint32, handle int32) (uint32, uint32) {
	if code == RETURN_CODE_BLOCKED {
		code = wait(uint32(handle))
	}
	return code & 0xF, code >> 4
}

// Yield lets the call's other goroutines run.
func Yield() {
	runtime.Gosched()
}

func wait(waitable uint32) uint32 {
	set := waitableSetNew()
	waitableJoin(waitable, set)
	pinner := runtime.Pinner{}
	defer pinner.Unpin()
	event := witRuntime.Allocate(&pinner, 8, 4)
	waitableSetWait(set, event)
	code := unsafe.Slice((*uint32)(event), 2)[1]
	waitableJoin(waitable, 0)
	waitableSetDrop(set)
	return code
}

//go:wasmimport $root [waitable-set-new]
//go:noescape
func waitableSetNew() uint32

//go:wasmimport $root [waitable-set-wait]
//go:noescape
func waitableSetWait(set uint32, event unsafe.Pointer) uint32

//go:wasmimport $root [waitable-set-drop]
//go:noescape
func waitableSetDrop(set uint32)

//go:wasmimport $root [waitable-join]
//go:noescape
func waitableJoin(waitable, set uint32)

//go:wasmimport $root [subtask-drop]
//go:noescape
func subtaskDrop(subtask uint32)
