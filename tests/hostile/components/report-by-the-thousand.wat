;; Reports more and more fields with names of the maximum length.
;; grants: report
;; answer: 200
;; absent: granted
;; held: a plugin has at most 16 fields
;; limits: cpu_ms = 3000, wall_ms = 10000

(import "report" "set" (func $set (param i32 i32 i32 i64 i32 i32 i32 i32 i32)))
(data (i32.const 1200) "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
(func (export "handle") (type $handle)
  (local $left i32)
  (local.set $left (i32.const 400))
  (loop $again
    ;; Two letters of the name are a counter.
    (i32.store8 (i32.const 1210) (i32.add (i32.const 97) (i32.rem_u (local.get $left) (i32.const 26))))
    (i32.store8 (i32.const 1211) (i32.add (i32.const 97) (i32.div_u (local.get $left) (i32.const 26))))
    ;; The value is a boolean; there is no unit.
    (call $set (i32.const 1200) (i32.const 64) (i32.const 2) (i64.const 1) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 3000))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $again (local.get $left)))
  call $tell)
