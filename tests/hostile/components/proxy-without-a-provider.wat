;; Sets the proxy's exceptions to a list of four billion addresses.
;; grants: proxy-redirector
;; answer: 500 plugin `proxy-without-a-provider` failed

(import "proxy-redirector" "set-no-proxy" (func $set (param i32 i32 i32)))
(func (export "handle") (type $handle) (call $set (i32.const 1024) (i32.const -1) (i32.const 3000)) call $tell)
