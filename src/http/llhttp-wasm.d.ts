/** llhttp as WebAssembly, as undici loads it. */
declare module 'undici/lib/llhttp/llhttp_simd-wasm.js' {
  const bytes: Buffer
  export = bytes
}
