;; Switches the connection to another protocol.
;; answer: 502 plugins may not set the header `upgrade`

(data (i32.const 1200) "Upgrade")
(data (i32.const 1220) "h2c")
(func (export "handle") (type $handle)
  (call $answer-with-header (i32.const 1200) (i32.const 7) (i32.const 1220) (i32.const 3)))
