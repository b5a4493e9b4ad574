;; Has a name that leads out of the folder of what plugins have stored.
;; manifest: name = "../../../etc"
;; refused: `name` has to be

(func (export "handle") (type $handle) call $ok)
