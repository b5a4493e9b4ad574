;; Imports an interface of the host that there is none of.
;; refused: platform:supervisor/valve

(component
  (import "platform:supervisor/valve@1.0.0" (instance (export "write" (func (param "pin" u32))))))
