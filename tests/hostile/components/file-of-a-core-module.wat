;; Is a core module, and no component.
;; refused: it is a core module and not a component

(module (func (export "handle")))
