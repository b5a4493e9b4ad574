;; Traps in its start function, each time that an instance is made ready.
;; answer: 500 `start-traps`

(func $start unreachable)
(start $start)
(func (export "handle") (type $handle) call $ok)
