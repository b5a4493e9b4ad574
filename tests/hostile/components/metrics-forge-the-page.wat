;; Reports a metric whose name ends the line and continues with another family.
;; grants: metrics
;; answer: 200
;; absent: granted
;; held: no metric can have such a name

(import "metrics" "set-gauge" (func $set (param i32 i32 i32 i32 f64 i32)))
(data (i32.const 1200) "a 1\nsupervisor_build_info{version=\"9\"} 1")
(func (export "handle") (type $handle)
  (call $set (i32.const 1200) (i32.const 39) (i32.const 0) (i32.const 0) (f64.const 1) (i32.const 3000))
  call $tell)
