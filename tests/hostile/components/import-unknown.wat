;; Imports an interface that the host does not have.
;; refused: platform:supervisor/valve

(component
  (import "platform:supervisor/valve@1.0.0" (instance (export "write" (func (param "pin" u32))))))
