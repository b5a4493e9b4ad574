;; Claims a name for which the policy pins another file, to obtain what that file is granted.
;; manifest: name = "spin"
;; manifest: routes = [{ method = "GET", path = "/v3/spin" }]
;; policy: none
;; refused: `spin`

(func (export "handle") (type $handle) call $ok)
