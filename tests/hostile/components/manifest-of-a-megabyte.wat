;; Has a manifest of a megabyte.
;; manifest: x = "<<1000000 times a>>"
;; refused: more than 65536

(func (export "handle") (type $handle) call $ok)
