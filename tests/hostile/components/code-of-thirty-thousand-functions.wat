;; Has thirty thousand functions, which take long to compile.
;; answer: 200
;; held: compilation runs alongside everything else, within a limit

<<30000 times (func (param i32) (result i32) (i32.mul (i32.add (local.get 0) (i32.const %i)) (local.get 0)))>>
(func (export "handle") (type $handle) call $ok)
