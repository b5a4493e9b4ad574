;; Wants four gibibytes of memory from the beginning.
;; refused: exceeds the limit of

(memory (export "memory") 65536)
(func (export "handle") (type $handle) call $ok)
