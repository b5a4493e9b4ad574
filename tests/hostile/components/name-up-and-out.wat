;; Has a name that leads out of the folder of the data that plugins have stored.
;; manifest: name = "../../../etc"
;; refused: `name` must be

(func (export "handle") (type $handle) call $ok)
