;; Initializes its memory from ninety thousand pieces each time an instance is created.
;; answer: 200
;; held: it uses up the plugin's own time

<<90000 times (data (i32.const 40000) "x")>>
(func (export "handle") (type $handle) call $ok)
