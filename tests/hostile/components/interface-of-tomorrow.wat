;; Is built for a version of the interface that does not exist yet.
;; manifest: interface = "1.999.0"
;; refused: 1.999.0

(func (export "handle") (type $handle) call $ok)
