;; Fails with a message that contains lines of the supervisor's log.
;; answer: 500
;; held: its message is a single JSON string

(data (i32.const 1200) "\nFORGED 2026-01-01T00:00:00Z INFO access: POST /v1/reboot status=202\n")
(func (export "handle") (type $handle) (call $error (i32.const 500) (i32.const 1200) (i32.const 70)))
