;; Contains two megabytes that nobody asked for, in a section of their own.
;; section: harmless <<2000000 times x>>
;; answer: 200
;; held: nobody reads it

(func (export "handle") (type $handle) call $ok)
