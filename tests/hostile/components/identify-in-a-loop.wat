;; Asks the device to identify itself again and again, although there is no provider for that here.
;; grants: identify
;; answer: 504 plugin `identify-in-a-loop`

(import "identify" "identify" (func $identify (param i32)))
(func (export "handle") (type $handle)
  (loop $again (global.set $free (i32.const 32768)) (call $identify (i32.const 3000)) (br $again))
  unreachable)
