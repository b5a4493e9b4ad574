;; Overrides the update locks of all services, although it is granted only to take locks, not to override them.
;; grants: update-lock
;; answer: 200 granted
;; log: without the grant `update-lock-force`
;; held: its request to override is ignored, and the locks of services are respected

(import "update-lock" "[static]lock.acquire-all" (func $acquire (param i32 i32)))
(func (export "handle") (type $handle) (call $acquire (i32.const 1) (i32.const 3000)) call $tell)
