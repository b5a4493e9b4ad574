;; Takes the update locks of all apps and never finishes.
;; grants: update-lock
;; answer: 504 plugin `locks-held-for-ever`
;; limits: wall_ms = 500

(import "update-lock" "[static]lock.acquire-all" (func $acquire (param i32 i32)))
(import "timer" "sleep" (func $sleep (param i32)))
(func (export "handle") (type $handle)
  (call $acquire (i32.const 0) (i32.const 3000))
  (call $sleep (i32.const -1))
  call $ok)
