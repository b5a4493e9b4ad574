;; Ends in the middle, like a file that was written to a full disk.
;; cut: 700
;; refused: it is cut off or damaged at byte

(func (export "handle") (type $handle) call $ok)
