;; Requests a unit whose name is an option of the command that looks up units.
;; grants: units
;; policy: units = ["openvpn.service"]
;; answer: 200 --root=
;; held: the policy does not name it

(import "units" "state" (func $state (param i32 i32 i32)))
(data (i32.const 1200) "--root=/tmp/evil")
(func (export "handle") (type $handle) (call $state (i32.const 1200) (i32.const 16) (i32.const 3000)) call $tell)
