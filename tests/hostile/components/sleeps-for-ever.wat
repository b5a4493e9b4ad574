;; Waits for longer than any client waits for an answer, in more calls than it may have.
;; at-once: 20
;; limits: wall_ms = 500
;; answer: 504 plugin `sleeps-for-ever` did not answer within 500 ms
;; answer: 503 there is no room for plugin `sleeps-for-ever`

(import "timer" "sleep" (func $sleep (param i32)))
(func (export "handle") (type $handle) (call $sleep (i32.const -1)) call $ok)
