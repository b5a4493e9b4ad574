;; Provides an action that the policy does not assign to it, so that the host calls it.
;; world: identifier
;; manifest: routes = []
;; manifest: provides = ["identify"]
;; manifest: boards = ["*"]
;; refused: provides `identify`

(func (export "identify") (result i32) (i32.const 1024))
(memory (export "memory") 1)
