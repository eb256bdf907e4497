import { formatUsd } from '../kernel/money.ts'
import type { EndedCall, ObserveCall } from './ended-call.ts'

/** Where lines go: a stream that neither blocks nor fails. */
export interface LineStream {
  write(text: string): unknown
}

export interface CallLog {
  readonly observe: ObserveCall
  /** What waits to be written: from now on it is the caller's to write. */
  take(): string
}

/** Lines that wait are written together: after so long, or when there are so many of them. */
const WRITE_AFTER_MS = 100
const WRITE_BYTES = 65_536

/**
 * A line for each call, as JSON between the lines of the log and in their form. It is put together by hand and written with
 * others, which takes 2 to 3 µs in all: with pino it took 5, and a write for each line 6 more.
 */
export function createCallLog(stream: LineStream): CallLog {
  // As bytes: strings that are added up are put together only when they are written, and hundreds of them took 0.7 ms then.
  const waiting = Buffer.allocUnsafeSlow(WRITE_BYTES)
  let end = 0
  let timer: NodeJS.Timeout | null = null
  function take(): string {
    if (timer !== null) clearTimeout(timer)
    timer = null
    const taken = waiting.toString('utf8', 0, end)
    end = 0
    return taken
  }
  const write = () => stream.write(take())
  return {
    observe(call) {
      const line = `${logLine(call)}\n`
      if (end + line.length * UTF8_BYTES_MAX > WRITE_BYTES) write()
      end += waiting.write(line, end)
      timer ??= setTimeout(write, WRITE_AFTER_MS).unref()
    },
    take,
  }
}

/** Of a character as JavaScript counts them. A line has some 400; with the longest name of a model, 7,000. */
const UTF8_BYTES_MAX = 3

/** pino's `info`. */
const LEVEL = 30

/** Names, figures and ids alone: no path, header or body, in which there may be secrets. */
export function logLine(call: EndedCall): string {
  const { requestId, keyId, surface, method, endpoint, status, code, tokens, costNanos, endedAtMs, ms } = call
  const model = call.modelServed ?? call.modelAsked
  return (
    `{"level":${LEVEL},"time":"${isoTime(endedAtMs)}","request":"${requestId}"` +
    `,"key":${textOrNull(keyId)},"surface":"${surface}","method":${quoted(method)}` +
    `,"endpoint":${textOrNull(endpoint?.template ?? null)}` +
    `,"model":${model === null ? 'null' : quoted(model)},"status":${status},"code":${textOrNull(code)}` +
    (tokens === null
      ? ''
      : `,"input_tokens":${tokens.input},"output_tokens":${tokens.output}` +
        `,"cache_read_tokens":${tokens.cacheRead},"cache_write_tokens":${tokens.cacheWrite}`) +
    `,"cost_usd":${formatUsd(costNanos)},"ms":${Math.round(ms)},"msg":"call"}`
  )
}

const PLAIN = /^[\w.:/-]*$/

/** Nearly no text has something to escape, and to see that takes less than to escape it. */
function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}

let shownSecond = 0
let shownText = ''

/** As `toISOString` has it. Many lines are of one second, and to put a date together is a tenth of a line. */
function isoTime(ms: number): string {
  const second = Math.floor(ms / 1_000)
  if (second !== shownSecond) {
    shownSecond = second
    shownText = new Date(second * 1_000).toISOString().slice(0, 20)
  }
  return `${shownText}${String(Math.floor(ms) % 1_000).padStart(3, '0')}Z`
}

/** Of our own ids, templates and codes, in which there is nothing to escape. */
function textOrNull(text: string | null): string {
  return text === null ? 'null' : `"${text}"`
}
