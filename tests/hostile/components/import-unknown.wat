;; Imports an interface of the host that there is none of.
;; refused: platform:supervisor/gpio

(component
  (import "platform:supervisor/gpio@1.0.0" (instance (export "write" (func (param "pin" u32))))))
