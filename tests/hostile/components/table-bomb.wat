;; Grows a table, whose elements the host stores, instead of its memory.
;; answer: 500 `table-bomb`
;; answer: 200
;; held: tables are limited, like memory

(table $table 1 funcref)
(func (export "handle") (type $handle)
  (loop $more (br_if $more (i32.ne (table.grow $table (ref.null func) (i32.const 1000)) (i32.const -1))))
  call $ok)
