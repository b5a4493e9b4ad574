;; Has one function of a hundred thousand instructions whose values stay live from the first to the last.
;; answer: 200
;; held: compilation runs alongside everything else, within a limit

(func (param i64) (result i64)
  (local <<1000 times i64 >>)
  <<20000 times (local.set 7 (i64.add (local.get 7) (i64.mul (local.get 0) (i64.const %i))))>>
  (local.get 7))
(func (export "handle") (type $handle) call $ok)
