;; Wants a table of four billion elements from the beginning.
;; refused: exceeds the limit of

(table 4294967295 funcref)
(func (export "handle") (type $handle) call $ok)
