;; Has a name with line breaks and terminal control codes, which appears in the log and in lists.
;; manifest: name = "a\nFORGED\u001b[2K"
;; refused: `name` must be

(func (export "handle") (type $handle) call $ok)
