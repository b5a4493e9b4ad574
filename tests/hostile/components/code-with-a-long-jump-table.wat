;; Has a jump table of a hundred thousand places, of each of which the compiler keeps an account.
;; answer: 200
;; held: compiling is done beside everything else, within a bound

(func (param i32) (block $out (br_table <<60000 times $out >> (local.get 0))))
(func (export "handle") (type $handle) call $ok)
