;; Sets a host name of two lines, the second of which is a line of another file.
;; grants: host-name
;; answer: 200
;; absent: granted
;; held: no host can have such a name

(import "host-name" "set" (func $set (param i32 i32 i32)))
(data (i32.const 1200) "board\n127.0.0.1 cloud.example")
(func (export "handle") (type $handle) (call $set (i32.const 1200) (i32.const 29) (i32.const 3000)) call $tell)
