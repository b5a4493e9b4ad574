;; Answers on paths where clients expect the device itself, to obtain their passwords.
;; manifest: routes = [{ method = "PATCH", path = "/v1/device/host-config" }, { method = "GET", path = "/v2/device/name" }]
;; refused: only stock plugins answer below `/v1` and `/v2`

(func (export "handle") (type $handle) call $ok)
