;; Imports sockets, to reach the network without going through the host.
;; refused: which no plugin gets

(component
  (import "wasi:sockets/instance-network@0.2.6" (instance
    (export "network" (type (sub resource)))
    (export "f" (func)))))
