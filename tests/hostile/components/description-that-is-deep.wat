;; Describes its routes with sixty thousand nested lists.
;; section: platform:openapi <<60000 times [>>
;; refused: `platform:openapi` is invalid

(func (export "handle") (type $handle) call $ok)
