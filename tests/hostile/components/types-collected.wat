;; Has structures that the engine has to garbage-collect, to reach code of the engine that nothing else needs.
;; refused: garbage collection

(component (core module (type $s (struct (field i32))) (func (drop (struct.new $s (i32.const 1))))))
