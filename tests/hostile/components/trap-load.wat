;; Reads beyond its memory, at the farthest address that an instruction can name.
;; answer: 500 plugin `trap-load` failed

(func (export "handle") (type $handle) (i32.load offset=4294967295 (i32.const -1)))
