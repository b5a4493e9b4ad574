;; Is a core module, not a component.
;; refused: it is a core module and not a component

(module (func (export "handle")))
