;; Fails with lines of the supervisor's log in its message.
;; answer: 500
;; held: what it says is one text of JSON

(data (i32.const 1200) "\nFORGED 2026-01-01T00:00:00Z INFO access: POST /v1/reboot status=202\n")
(func (export "handle") (type $handle) (call $error (i32.const 500) (i32.const 1200) (i32.const 70)))
