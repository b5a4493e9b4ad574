;; Opens an LED whose name leads out of the folder of LEDs, to a file of the host.
;; grants: led
;; answer: 200 ../../../../etc/passwd
;; held: there is no LED with such a name

(import "led" "[static]light.open" (func $open (param i32 i32 i32)))
(data (i32.const 1200) "../../../../etc/passwd")
(func (export "handle") (type $handle) (call $open (i32.const 1200) (i32.const 22) (i32.const 3000)) call $tell)
