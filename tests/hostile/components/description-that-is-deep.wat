;; Describes its routes by sixty thousand lists in each other.
;; section: platform:openapi <<60000 times [>>
;; refused: `platform:openapi` is invalid

(func (export "handle") (type $handle) call $ok)
