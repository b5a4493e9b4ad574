;; Writes its memory from ninety thousand pieces each time that an instance is made.
;; answer: 200
;; held: it costs the plugin's own time

<<90000 times (data (i32.const 40000) "x")>>
(func (export "handle") (type $handle) call $ok)
