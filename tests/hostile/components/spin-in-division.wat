;; Computes with the slowest instructions that exist, in a loop without calls.
;; limits: cpu_ms = 300, wall_ms = 20000
;; answer: 504 plugin `spin-in-division` used more than its 300 ms of CPU time

(func (export "handle") (type $handle)
  (local $x i64) (local $y f64)
  (local.set $x (i64.const 1))
  (loop $again
    (local.set $x (i64.or (i64.rem_u (i64.const -1) (local.get $x)) (i64.const 3)))
    (local.set $y (f64.sqrt (f64.div (f64.const 1) (f64.convert_i64_u (local.get $x)))))
    (br $again))
  unreachable)
