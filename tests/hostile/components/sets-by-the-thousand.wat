;; Creates sets of events until the host has none left.
;; answer: 500 `sets-by-the-thousand`

(import "$root" "[waitable-set-new]" (func $set (result i32)))
(func (export "handle") (type $handle) (loop $more (drop (call $set)) (br $more)) unreachable)
