;; Has a manifest with ten thousand lists in each other, to use up the stack of whoever reads it.
;; manifest: x = <<10000 times [>>
;; refused: its manifest is invalid

(func (export "handle") (type $handle) call $ok)
