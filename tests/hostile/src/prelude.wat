;; What most components also need: appended to the text of each, except for the parts that the text has itself.

;; A request, flattened: method, path, route, params, query, headers (an address and a length each), and the body (its
;; kind, one of three, and two more values).
(type $handle (func
  (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))

;; part: memory
(memory (export "memory") 2)

;; part: cabi_realloc
(global $free (mut i32) (i32.const 32768))
(func $alloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (local $at i32)
  (local.set $at (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -16)))
  (global.set $free (i32.add (local.get $at) (local.get 3)))
  (if (i32.gt_u (global.get $free) (i32.mul (memory.size) (i32.const 65536)))
    (then (if (i32.eq (i32.const -1) (memory.grow (i32.add (i32.const 1) (i32.shr_u
      (i32.sub (global.get $free) (i32.mul (memory.size) (i32.const 65536))) (i32.const 16)))))
      (then unreachable))))
  (local.get $at))

;; part: answers
;; Writes the answer at 1024, and keeps the headers that $headers set before.
(func $answer (param $status i32) (param $at i32) (param $length i32) (result i32)
  (i32.store8 (i32.const 1024) (i32.const 0))
  (i32.store16 (i32.const 1028) (local.get $status))
  (i32.store8 (i32.const 1040) (i32.const 1))
  (i32.store (i32.const 1044) (local.get $at))
  (i32.store (i32.const 1048) (local.get $length))
  (i32.const 1024))
(func $headers (param $at i32) (param $count i32)
  (i32.store (i32.const 1032) (local.get $at))
  (i32.store (i32.const 1036) (local.get $count)))
;; Writes one header at 2048, and the answer `ok` with it.
(func $answer-with-header (param $name i32) (param $name-length i32) (param $value i32) (param $value-length i32)
  (result i32)
  (i32.store (i32.const 2048) (local.get $name))
  (i32.store (i32.const 2052) (local.get $name-length))
  (i32.store (i32.const 2056) (local.get $value))
  (i32.store (i32.const 2060) (local.get $value-length))
  (call $headers (i32.const 2048) (i32.const 1))
  (call $answer (i32.const 200) (i32.const 1100) (i32.const 2)))
(data (i32.const 1100) "ok")
(func $ok (result i32) (call $answer (i32.const 200) (i32.const 1100) (i32.const 2)))
;; Writes an error at 1024.
(func $error (param $status i32) (param $at i32) (param $length i32) (result i32)
  (i32.store8 (i32.const 1024) (i32.const 1))
  (i32.store16 (i32.const 1028) (local.get $status))
  (i32.store (i32.const 1032) (i32.const 0))
  (i32.store (i32.const 1036) (i32.const 0))
  (i32.store (i32.const 1040) (local.get $at))
  (i32.store (i32.const 1044) (local.get $length))
  (i32.const 1024))
;; Answers with the result that an import wrote at 3000: `granted` on success, otherwise the text of the error. In all
;; errors that have a text, it follows two discriminants.
(data (i32.const 1110) "granted")
(func $tell (result i32)
  (if (result i32) (i32.load8_u (i32.const 3000))
    (then (call $answer (i32.const 200) (i32.load (i32.const 3008)) (i32.load (i32.const 3012))))
    (else (call $answer (i32.const 200) (i32.const 1110) (i32.const 7)))))
