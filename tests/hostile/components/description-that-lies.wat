;; Describes paths of the core in its part of the API description, so that clients read its claims about them.
;; section: platform:openapi {"paths":{"/v1/reboot":{"post":{"summary":"FORGED"}}},"info":{"title":"FORGED"}}
;; answer: 200
;; held: it counts as one plugin's description of its own routes

(func (export "handle") (type $handle) call $ok)
