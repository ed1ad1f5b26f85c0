;; The smallest program that Envoy loads as a proxy-wasm plugin: it does nothing.
;; idle.wasm.hex is made of it by: wasm-as idle.wat -o - | xxd -p -c 64
(module
  (memory (export "memory") 1)
  (func (export "_initialize"))
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024)))
