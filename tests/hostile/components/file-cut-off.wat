;; Ends in the middle, as a file whose disk was full.
;; cut: 700
;; refused: not a WebAssembly component

(func (export "handle") (type $handle) call $ok)
