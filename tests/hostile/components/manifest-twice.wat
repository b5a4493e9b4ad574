;; Has two manifests, so that the owner is shown one and the other is used.
;; section: platform:manifest name = "other"
;; refused: it has 2 sections

(func (export "handle") (type $handle) call $ok)
