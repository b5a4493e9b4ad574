;; Ends in the middle, as a file whose disk was full.
;; cut: 700
;; refused: it is cut off or damaged at byte

(func (export "handle") (type $handle) call $ok)
