;; Has a hundred tables, more than an instance has room for.
;; refused: it has 100 tables, but a plugin may have at most 8

<<100 times (table 1 funcref)>>
(func (export "handle") (type $handle) call $ok)
