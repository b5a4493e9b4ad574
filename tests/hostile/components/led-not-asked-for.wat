;; Uses the LEDs without mentioning them in its manifest.
;; refused: which takes the capability `led`, and its manifest does not ask for that

(import "led" "names" (func $names (param i32)))
(func (export "handle") (type $handle) (call $names (i32.const 3000)) call $ok)
