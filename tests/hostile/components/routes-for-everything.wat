;; Answers everything that nothing else answers, with patterns made only of parameters.
;; manifest: routes = [{ method = "GET", path = "/:a" }, { method = "GET", path = "/:a/:b" }, { method = "GET", path = "/:a/:b/:c" }]
;; refused: only stock plugins answer below

(func (export "handle") (type $handle) call $ok)
