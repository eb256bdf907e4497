/** llhttp as WebAssembly, the way undici itself loads it. */
declare module 'undici/lib/llhttp/llhttp_simd-wasm.js' {
  const bytes: Buffer
  export = bytes
}
