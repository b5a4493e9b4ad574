;; Answers in place of the core, on the path of the list of plugins.
;; manifest: routes = [{ method = "GET", path = "/v3/plugins" }]
;; policy: routes = ["/v3/*"]
;; refused: /v3/plugins

(func (export "handle") (type $handle) call $ok)
