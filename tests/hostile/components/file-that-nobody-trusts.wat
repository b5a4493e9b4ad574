;; Is in the plugin folder, but not in the policy.
;; policy: none
;; refused: pins no file of a plugin `file-that-nobody-trusts`

(func (export "handle") (type $handle) call $ok)
