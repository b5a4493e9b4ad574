;; Has two manifests, of which one is shown to the owner and the other one is used.
;; section: platform:manifest name = "other"
;; refused: it has 2 sections

(func (export "handle") (type $handle) call $ok)
