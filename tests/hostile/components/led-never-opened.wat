;; Sets an LED through handles that it never received, to get hold of somebody else's.
;; grants: led
;; answer: 500 plugin `led-never-opened` failed

(import "led" "[method]light.set" (func $set (param i32 i32 i32)))
(func (export "handle") (type $handle)
  (local $handle i32)
  (loop $next
    (local.set $handle (i32.add (local.get $handle) (i32.const 1)))
    (call $set (local.get $handle) (i32.const 255) (i32.const 3000))
    (br $next))
  unreachable)
