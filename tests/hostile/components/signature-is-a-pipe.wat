;; Has a pipe as its signature, so that reading the signature takes forever, and nothing else is loaded.
;; signature: pipe
;; answer: 200
;; held: the policy names its digest, and the signature is refused without being read

(func (export "handle") (type $handle) call $ok)
