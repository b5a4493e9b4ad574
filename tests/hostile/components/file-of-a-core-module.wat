;; Is a core module, and no component.
;; refused: not a WebAssembly component

(module (func (export "handle")))
