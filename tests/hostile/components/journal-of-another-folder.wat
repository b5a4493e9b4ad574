;; Makes the journal command read files of its choice, by passing an option in place of a unit.
;; grants: journal
;; answer: 200 unit
;; held: no value may begin with `-`

(import "journal" "read" (func $read (param i32 i32)))
(data (i32.const 1200) "--directory=/etc")
(func (export "handle") (type $handle)
  (i32.store (i32.const 4004) (i32.const 1))
  (i32.store (i32.const 4008) (i32.const 1200))
  (i32.store (i32.const 4012) (i32.const 16))
  (call $read (i32.const 4000) (i32.const 3000))
  call $tell)
