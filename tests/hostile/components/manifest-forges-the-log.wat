;; Has a manifest with an invalid line of terminal control codes, which the error about it would show.
;; manifest: routes = [2K[1A FORGED INFO access: POST /v1/reboot status=202
;; refused: its manifest is invalid

(func (export "handle") (type $handle) call $ok)
