;; Requests a table of four billion elements from the start.
;; refused: entries in a table at its start, but a plugin may have at most

(table 4294967295 funcref)
(func (export "handle") (type $handle) call $ok)
