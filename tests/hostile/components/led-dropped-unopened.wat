;; Returns handles that it never received.
;; grants: led
;; answer: 500 plugin `led-dropped-unopened` failed

(import "led" "[resource-drop]light" (func $drop (param i32)))
(func (export "handle") (type $handle) (call $drop (i32.const 1)) call $ok)
