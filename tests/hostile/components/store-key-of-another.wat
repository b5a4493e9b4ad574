;; Reads data that another plugin has stored, with a key that leads there.
;; grants: store
;; answer: 200 granted
;; held: it counts as one of the plugin's own keys, which nobody has set

(import "store" "get" (func $get (param i32 i32 i32)))
(data (i32.const 1200) "../device-info/' OR 1=1 --\00")
(func (export "handle") (type $handle)
  (call $get (i32.const 1200) (i32.const 27) (i32.const 3000))
  (if (i32.load8_u (i32.const 3004)) (then unreachable))
  call $tell)
