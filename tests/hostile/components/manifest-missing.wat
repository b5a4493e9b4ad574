;; Provides no information about itself.
;; manifest: none
;; refused: it has no section `platform:manifest`

(func (export "handle") (type $handle) call $ok)
