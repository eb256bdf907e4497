import wasm from 'undici/lib/llhttp/llhttp_simd-wasm.js'

declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { readonly exports: Exports }
}

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer }
  _initialize(): void
  malloc(bytes: number): number
  llhttp_alloc(kind: number): number
  llhttp_free(parser: number): void
  llhttp_execute(parser: number, at: number, bytes: number): number
  llhttp_finish(parser: number): number
  llhttp_resume(parser: number): void
  llhttp_resume_after_upgrade(parser: number): void
  llhttp_get_error_pos(parser: number): number
  llhttp_get_method(parser: number): number
  llhttp_get_http_major(parser: number): number
  llhttp_get_http_minor(parser: number): number
  llhttp_errno_name(code: number): number
  llhttp_method_name(method: number): number
}

export const KIND = { request: 1, response: 2 } as const

export const CODE = { ok: 0, paused: 21, pausedUpgrade: 22, stopped: 24 } as const

/** Further results of `onHead`: no body follows, or the parser must not read the body. */
export const HEAD = { noBody: 1, bodyElsewhere: 2 } as const

export const SPAN = { target: 0, reason: 1, field: 2, value: 3, body: 4 } as const
export type SpanKind = (typeof SPAN)[keyof typeof SPAN]

/** Callbacks of the parser. They must not throw or run a parser, because WebAssembly is below them on the stack. */
interface ParserCallbacks {
  onBegin(): void
  /** Called for a part of the input of one kind. The next part of the same kind may continue it. */
  onSpan(kind: SpanKind, from: number, to: number): number
  onHead(status: number, isUpgrade: boolean, keepAlive: boolean): number
  onEnd(): number
}

/** Maximum bytes per run: one socket read. */
export const RUN_BYTES_MAX = 64 * 1024

const BLANK = 0x20

/** Node's own parser, in the build that undici publishes: it reports errors and pauses as return values. */
export class Llhttp {
  readonly exports: Exports
  readonly #inputAt: number
  #view: Buffer
  readonly #methods: string[] = []

  constructor(callbacks: ParserCallbacks) {
    const span = (kind: SpanKind) => (_parser: number, at: number, bytes: number) =>
      callbacks.onSpan(kind, at - this.#inputAt, at - this.#inputAt + bytes)
    const env = {
      wasm_on_message_begin() {
        callbacks.onBegin()
        return CODE.ok
      },
      wasm_on_url: span(SPAN.target),
      wasm_on_status: span(SPAN.reason),
      wasm_on_header_field: span(SPAN.field),
      wasm_on_header_value: span(SPAN.value),
      wasm_on_headers_complete: (_parser: number, status: number, isUpgrade: number, keepAlive: number) =>
        callbacks.onHead(status, isUpgrade === 1, keepAlive === 1),
      wasm_on_body: span(SPAN.body),
      wasm_on_message_complete: () => callbacks.onEnd(),
    }
    this.exports = new WebAssembly.Instance(new WebAssembly.Module(wasm), { env }).exports
    this.exports._initialize()
    this.#inputAt = this.exports.malloc(RUN_BYTES_MAX)
    this.#view = this.#makeView()
  }

  load(bytes: Buffer): void {
    this.#input.set(bytes)
  }

  text(from: number, to: number): string {
    return this.#input.toString('latin1', from, to)
  }

  /** The first character that is not a blank; null if there is none. */
  firstLetter(from: number, to: number): string | null {
    const input = this.#input
    let at = from
    while (at < to && input[at] === BLANK) at += 1
    return at < to ? String.fromCharCode(input[at] ?? 0) : null
  }

  run(parser: number, from: number, to: number): number {
    return this.exports.llhttp_execute(parser, this.#inputAt + from, to - from)
  }

  position(parser: number): number {
    return this.exports.llhttp_get_error_pos(parser) - this.#inputAt
  }

  resume(parser: number, code: number): void {
    if (code === CODE.pausedUpgrade) this.exports.llhttp_resume_after_upgrade(parser)
    else this.exports.llhttp_resume(parser)
  }

  method(parser: number): string {
    const number = this.exports.llhttp_get_method(parser)
    this.#methods[number] ??= this.#cString(this.exports.llhttp_method_name(number))
    return this.#methods[number]
  }

  httpVersion(parser: number): string {
    const major = this.exports.llhttp_get_http_major(parser)
    const minor = this.exports.llhttp_get_http_minor(parser)
    return major === 1 && minor === 1 ? '1.1' : `${major}.${minor}`
  }

  errorName(code: number): string {
    return this.#cString(this.exports.llhttp_errno_name(code))
  }

  /** The parser's input buffer. When the memory grows for another parser, the old view is detached. */
  get #input(): Buffer {
    if (this.#view.length === 0) this.#view = this.#makeView()
    return this.#view
  }

  #makeView(): Buffer {
    return Buffer.from(this.exports.memory.buffer, this.#inputAt, RUN_BYTES_MAX)
  }

  #cString(at: number): string {
    const memory = Buffer.from(this.exports.memory.buffer)
    return memory.toString('latin1', at, memory.indexOf(0, at))
  }
}
