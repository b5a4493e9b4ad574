;; Reports more and more series with names of the maximum length.
;; grants: metrics
;; answer: 200
;; absent: granted
;; held: a plugin has at most 100 series
;; limits: cpu_ms = 3000, wall_ms = 10000

(import "metrics" "set-gauge" (func $set (param i32 i32 i32 i32 f64 i32)))
(data (i32.const 1200) "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
(func (export "handle") (type $handle)
  (local $left i32)
  (local.set $left (i32.const 400))
  (loop $again
    ;; Two letters of the name are a counter.
    (i32.store8 (i32.const 1210) (i32.add (i32.const 97) (i32.rem_u (local.get $left) (i32.const 26))))
    (i32.store8 (i32.const 1211) (i32.add (i32.const 97) (i32.div_u (local.get $left) (i32.const 26))))
    (call $set (i32.const 1200) (i32.const 64) (i32.const 0) (i32.const 0) (f64.const 1) (i32.const 3000))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (br_if $again (local.get $left)))
  call $tell)
