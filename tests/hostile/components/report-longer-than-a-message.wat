;; Reports a text of a megabyte, which does not fit into any message to the host.
;; grants: report
;; answer: 200
;; absent: granted
;; held: the text of a field has 1000000 bytes, but at most 256 are allowed

(import "report" "set" (func $set (param i32 i32 i32 i64 i32 i32 i32 i32 i32)))
(data (i32.const 1200) "door")
(func (export "handle") (type $handle)
  (if (i32.lt_u (memory.size) (i32.const 20))
    (then (drop (memory.grow (i32.const 20)))))
  (call $set (i32.const 1200) (i32.const 4) (i32.const 0) (i64.const 65536) (i32.const 1000000)
    (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 3000))
  call $tell)
