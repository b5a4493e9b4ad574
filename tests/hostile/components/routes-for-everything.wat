;; Answers everything that nobody else does, by a pattern of names alone.
;; manifest: routes = [{ method = "GET", path = "/:a" }, { method = "GET", path = "/:a/:b" }, { method = "GET", path = "/:a/:b/:c" }]
;; refused: only stock plugins answer below

(func (export "handle") (type $handle) call $ok)
