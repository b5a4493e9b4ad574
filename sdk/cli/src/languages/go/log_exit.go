// The build adds this file to Go's package os, whose function Exit calls logExit.
package os

import "unsafe"

// logExit says why the call ends. Exit itself would end it without a reason.
func logExit(code int) {
	const levelError = 4
	message := "the plugin ended itself with status " + decimal(int64(int32(code))) + "; return an error instead"
	supervisorLog(levelError, unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)))
}

// decimal returns the digits of a number. The package os cannot import strconv, and the package that it imports instead has
// other names in other versions of Go.
func decimal(number int64) string {
	if number < 0 {
		return "-" + decimal(-number)
	}
	if number < 10 {
		return string(rune('0' + number))
	}
	return decimal(number/10) + decimal(number%10)
}

//go:wasmimport platform:supervisor/log@1.4.0 write
//go:noescape
func supervisorLog(level uint32, message unsafe.Pointer, length uint32)
