;; Has ten thousand routes, each of which every request would be matched against.
;; manifest: routes = [<<10000 times { method = "GET", path = "/v3/r%i/:a/:b/:c/:d" },>>]
;; refused: more than 65536

(func (export "handle") (type $handle) call $ok)
