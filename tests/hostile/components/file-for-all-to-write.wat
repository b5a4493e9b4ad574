;; Is a file that every user of the device can change after it has been checked.
;; file: mode 666
;; refused: chmod

(func (export "handle") (type $handle) call $ok)
