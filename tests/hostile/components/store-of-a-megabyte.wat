;; Stores a value that is longer than all values together may be.
;; grants: store
;; answer: 200
;; answer: 500 plugin `store-of-a-megabyte` failed
;; held: the host reports that it is too long

(import "store" "set" (func $set (param i32 i32 i32 i32 i32)))
(func (export "handle") (type $handle)
  (drop (memory.grow (i32.const 40)))
  (call $set (i32.const 1100) (i32.const 2) (i32.const 65536) (i32.const 1500000) (i32.const 3000))
  call $tell)
