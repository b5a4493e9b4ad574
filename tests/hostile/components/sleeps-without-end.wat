;; Wakes up again and again, immediately each time, so that the host does nothing but wake it.
;; limits: wall_ms = 800
;; answer: 504 plugin `sleeps-without-end`

(import "timer" "sleep" (func $sleep (param i32)))
(func (export "handle") (type $handle) (loop $again (call $sleep (i32.const 0)) (br $again)) unreachable)
