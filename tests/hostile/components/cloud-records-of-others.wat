;; Reads records of a kind that the policy does not name, by adding a filter of its own to the name.
;; grants: cloud
;; policy: records = ["device_tag"]
;; answer: 200
;; absent: granted
;; held: the policy names the kinds of records

(import "cloud" "records" (func $records (param i32 i32 i32 i32 i32)))
(data (i32.const 1200) "user?$filter=id ne 0")
(func (export "handle") (type $handle)
  (call $records (i32.const 1200) (i32.const 20) (i32.const 0) (i32.const 0) (i32.const 3000))
  call $tell)
