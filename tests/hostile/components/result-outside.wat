;; Makes the host write its result beyond the end of the plugin's memory.
;; grants: device
;; answer: 500 plugin `result-outside` failed

(import "device" "state" (func $state (param i32)))
(func (export "handle") (type $handle) (call $state (i32.const -8)) call $ok)
