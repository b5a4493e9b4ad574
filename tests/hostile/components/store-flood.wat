;; Writes to its store as often as it can, to disk each time.
;; grants: store
;; answer: 504 `store-flood`
;; limits: wall_ms = 1500

(import "store" "set" (func $set (param i32 i32 i32 i32 i32)))
(func (export "handle") (type $handle)
  (loop $again
    (global.set $free (i32.const 32768))
    (call $set (i32.const 1100) (i32.const 2) (i32.const 0) (i32.const 60000) (i32.const 3000))
    (br $again))
  unreachable)
