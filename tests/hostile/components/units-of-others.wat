;; Restarts a unit that the policy does not name for it, with a pattern that matches all units.
;; grants: units
;; policy: units = ["openvpn.service"]
;; answer: 200 *
;; held: the policy names units, not patterns

(import "units" "restart" (func $restart (param i32 i32 i32)))
(data (i32.const 1200) "*")
(func (export "handle") (type $handle) (call $restart (i32.const 1200) (i32.const 1) (i32.const 3000)) call $tell)
