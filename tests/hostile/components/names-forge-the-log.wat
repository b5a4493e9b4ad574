;; Has functions whose names are lines of the log, and traps in them.
;; answer: 500 plugin `names-forge-the-log` failed
;; log: names-forge-the-log

(func $"f\nFORGED INFO access: POST /v1/reboot status=202\0d\1b[2K" unreachable)
(func (export "handle") (type $handle)
  (call $"f\nFORGED INFO access: POST /v1/reboot status=202\0d\1b[2K")
  call $ok)
