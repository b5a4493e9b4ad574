;; Has a manifest with ten thousand nested lists, to exhaust the stack of the parser.
;; manifest: x = <<10000 times [>>
;; refused: its manifest is invalid

(func (export "handle") (type $handle) call $ok)
