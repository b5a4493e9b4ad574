;; Is a file that every user of the device can write, after it was looked at.
;; file: mode 666
;; refused: chmod

(func (export "handle") (type $handle) call $ok)
