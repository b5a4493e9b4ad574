;; Reports a text that clears the reader's terminal and reverses the direction of what follows it.
;; grants: report
;; answer: 200
;; absent: granted
;; held: without control characters

(import "report" "set" (func $set (param i32 i32 i32 i64 i32 i32 i32 i32 i32)))
(data (i32.const 1200) "door")
(data (i32.const 1210) "\1b[2J\e2\80\aenepo")
(func (export "handle") (type $handle)
  (call $set (i32.const 1200) (i32.const 4) (i32.const 0) (i64.const 1210) (i32.const 11)
    (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 3000))
  call $tell)
