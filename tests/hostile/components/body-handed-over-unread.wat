;; Accepts a request with a body of almost a megabyte, reads none of it, and never finishes.
;; body: 900000
;; limits: wall_ms = 500
;; answer: 504 plugin `body-handed-over-unread`

(import "timer" "sleep" (func $sleep (param i32)))
(func (export "handle") (type $handle) (call $sleep (i32.const -1)) call $ok)
