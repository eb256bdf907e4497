import type { Exchange } from '../http/exchange.ts'
import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import { codingOf } from '../metering/content-coding.ts'
import { UsageCutter } from '../providers/chat-usage/cut-usage-out.ts'
import { type ByteEditor, RecodedStream, type TakeBytes } from '../providers/chat-usage/recode-stream.ts'
import { isJsonType } from '../providers/surfaces.ts'

/** Changes a reply on its way to the client. */
export interface ReplyEditor {
  /** A promise means: the next chunk waits for it. `broken` ends the reply as a cut one. */
  write(chunk: Buffer, take: TakeBytes): Promise<'open' | 'broken'> | null
  end(take: TakeBytes): Promise<'whole' | 'broken'>
  /** Upstream was cut; what may still leave, leaves. */
  breakOff(take: TakeBytes): Promise<void>
  destroy(): void
}

/**
 * Takes out of a stream of events what our asking for usage has put in; null for every other reply, which passes as it is.
 */
export function createUsageRemover(status: number, headers: RawHeaders): ReplyEditor | null {
  const type = firstValue(headers, 'content-type') ?? ''
  if (status < 200 || status > 299 || !/^\s*text\/event-stream\b/i.test(type)) return null
  return editReply(headers, new UsageCutter())
}

/** In whatever coding it comes; null for one that is not known. */
function editReply(headers: RawHeaders, editor: ByteEditor): ReplyEditor | null {
  const coding = codingOf(firstValue(headers, 'content-encoding'))
  if (coding === 'unknown') return null
  return coding === 'identity' ? plainEditor(editor) : new RecodedStream(coding.coding, editor)
}

/** Where the client finds this gateway; null where addresses in replies stay as they are. */
export function originFor(
  exchange: Exchange,
  isSecure: ((exchange: Exchange) => boolean) | null,
): string | null {
  const host = isSecure === null ? undefined : firstValue(exchange.headers, 'host')
  return host === undefined ? null : `${isSecure?.(exchange) ? 'https' : 'http'}://${host}`
}

/** Replies that show Message batches: one, or a list of them. */
const SHOWS_BATCHES = /^\/v1\/messages\/batches(?:\/\{[^/]+\}(?:\/cancel)?)?$/

/**
 * Points the `results_url` of Message batches at this gateway, where it is to do so. Upstream gives an absolute address, and
 * SDKs fetch it as it is: past the gateway, with a key that is ours. Null for every other reply.
 */
export function createUrlRewriter(
  { template, origin }: { readonly template: string; readonly origin: string | null },
  status: number,
  headers: RawHeaders,
): ReplyEditor | null {
  if (origin === null || status !== 200 || !SHOWS_BATCHES.test(template)) return null
  if (!isJsonType(firstValue(headers, 'content-type') ?? '')) return null
  return editReply(headers, new ResultsUrls(origin))
}

/** Some servers write a slash as `\/`. */
const RESULTS_URL =
  /("results_url"\s*:\s*")(?:[^"\\]|\\\/)*?((?:\\?\/)v1\\?\/messages\\?\/batches\\?\/[\w-]+\\?\/results")/g

/** Keeps a reply until it is whole. One that is too long passes as it is. */
class ResultsUrls implements ByteEditor {
  readonly #origin: string
  readonly #chunks: Buffer[] = []
  #bytes = 0

  constructor(origin: string) {
    this.#origin = origin
  }

  write(chunk: Buffer): Buffer | null {
    this.#bytes += chunk.length
    this.#chunks.push(chunk)
    return this.#bytes > limits.batchListBytesMax ? this.#take() : null
  }

  end(): Buffer {
    if (this.#bytes > limits.batchListBytesMax) return this.#take()
    // Latin-1 keeps every byte as it is, whatever stands around the addresses.
    const text = this.#take().toString('latin1')
    // A host may have a `$`, which is a sign in a replacement that is text.
    const replace = (_all: string, before: string, path: string) => `${before}${this.#origin}${path}`
    return Buffer.from(text.replace(RESULTS_URL, replace), 'latin1')
  }

  #take(): Buffer {
    return Buffer.concat(this.#chunks.splice(0))
  }
}

function plainEditor(editor: ByteEditor): ReplyEditor {
  return {
    write(chunk, take) {
      const bytes = editor.write(chunk)
      const wait = bytes === null ? null : take(bytes)
      return wait === null ? null : wait.then(() => 'open' as const)
    },
    async end(take) {
      const rest = editor.end()
      if (rest !== null) await take(rest)
      return 'whole'
    },
    async breakOff(take) {
      const rest = editor.end()
      if (rest !== null) await take(rest)
    },
    destroy() {},
  }
}
