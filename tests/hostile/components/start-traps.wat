;; Traps in its start function each time an instance is prepared.
;; answer: 500 `start-traps`

(func $start unreachable)
(start $start)
(func (export "handle") (type $handle) call $ok)
