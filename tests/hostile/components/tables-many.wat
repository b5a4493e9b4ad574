;; Has a hundred tables, more than an instance has places for.
;; refused: tables count of 100 exceeds

<<100 times (table 1 funcref)>>
(func (export "handle") (type $handle) call $ok)
