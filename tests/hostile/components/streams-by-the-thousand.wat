;; Creates streams until the host has none left, and answers with none of them.
;; answer: 500 `streams-by-the-thousand`

(import "exports" "[stream-new-0]handle" (func $new (result i64)))
(func (export "handle") (type $handle) (loop $more (drop (call $new)) (br $more)) unreachable)
