;; Writes lines to the log that pass for the supervisor's own, with all kinds of line breaks and terminal control codes.
;; answer: 200
;; log: log-forged

(import "log" "write" (func $write (param i32 i32 i32)))
(data (i32.const 1200) "a\nFORGED INFO access: POST /v1/reboot\rFORGED\0bFORGED\c2\85FORGED\e2\80\a8FORGED\1b[2K\1b[1AFORGED")
(func (export "handle") (type $handle) (call $write (i32.const 2) (i32.const 1200) (i32.const 96)) call $ok)
