;; Requests the LEDs, which nobody has granted.
;; grants: led
;; policy: grants = []
;; refused: needs the capability `led` (harm)

(import "led" "names" (func $names (param i32)))
(func (export "handle") (type $handle) (call $names (i32.const 3000)) call $ok)
