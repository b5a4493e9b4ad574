;; Describes paths of the core in its part of the API's description, so that clients read there what it says.
;; section: platform:openapi {"paths":{"/v1/reboot":{"post":{"summary":"FORGED"}}},"info":{"title":"FORGED"}}
;; answer: 200
;; held: it is one plugin's description of its own routes

(func (export "handle") (type $handle) call $ok)
