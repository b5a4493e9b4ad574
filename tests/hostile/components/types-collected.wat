;; Has structures that the engine has to collect, for code of it that nobody else needs.
;; refused: garbage collection

(component (core module (type $s (struct (field i32))) (func (drop (struct.new $s (i32.const 1))))))
