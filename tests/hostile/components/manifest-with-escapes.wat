;; Has a name with line breaks and signs of terminals, which stands in the log and in lists.
;; manifest: name = "a\nFORGED\u001b[2K"
;; refused: `name` must be

(func (export "handle") (type $handle) call $ok)
