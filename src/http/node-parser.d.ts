/**
 * Node's own HTTP parser, llhttp, as `node:http` itself uses it. It is not documented, has had this shape since
 * Node 12, and is loaded without a warning; `test/http/message-reader.test.ts` holds what is relied on.
 */
declare module 'node:_http_common' {
  export class HTTPParser {
    static readonly REQUEST: number
    static readonly RESPONSE: number
    static readonly kOnMessageBegin: number
    static readonly kOnHeaders: number
    static readonly kOnHeadersComplete: number
    static readonly kOnBody: number
    static readonly kOnMessageComplete: number

    initialize(kind: number, resource: object, headBytesMax: number): void
    /** How many bytes were taken, or why they are not HTTP. */
    execute(bytes: Buffer): number | ParserError
    /** The connection has ended. */
    finish(): ParserError | undefined
    /** Gives its memory back. It must not be running. */
    close(): void
  }

  export interface ParserError extends Error {
    readonly code: string
    readonly reason: string
    readonly bytesParsed: number
  }

  /** By the number that the parser gives. */
  export const methods: readonly string[]
}

/** The part of `node:http` with the reason phrases. All of it would load Node's own fetch as well: 60 ms of the start. */
declare module 'node:_http_server' {
  export const STATUS_CODES: Readonly<Record<number, string | undefined>>
}
