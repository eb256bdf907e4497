import { limits } from '../kernel/limits.ts'
import { type Llhttp, SPAN, type SpanKind } from './llhttp.ts'

/** Heads up to this size are sliced from one string: a third of the time, but each slice retains the string. */
const SLICED_HEAD_BYTES_MAX = 4 * 1024

/** The spans of the parser run that is not collected yet: kind, from, to. Only one parser runs at a time. */
const spans: number[] = []
let spanCount = 0

/** The texts of a head, or of trailers, from the spans that the parser reports. */
export class HeadText {
  lines: string[] = []
  target = ''
  reason = ''
  #bytes = 0
  /** Where the name of the protocol begins in this run, after blanks; -1 once it has been read. */
  #protocolAt = -1

  begin(): void {
    this.target = ''
    this.reason = ''
    this.#bytes = 0
  }

  /** What follows is counted separately: it is limited like a head. */
  endHead(): void {
    this.#bytes = 0
  }

  /** Returns the bytes of the head so far. */
  add(kind: SpanKind, from: number, to: number): number {
    if (kind === SPAN.target) this.#protocolAt = to
    spans[spanCount] = kind
    spans[spanCount + 1] = from
    spans[spanCount + 2] = to
    spanCount += 3
    this.#bytes += to - from
    return this.#bytes
  }

  /** Reads the spans of this run. False: the head has too many lines. */
  collect(llhttp: Llhttp): boolean {
    if (spanCount === 0) return true
    const start = spans[1] ?? 0
    const end = spans[spanCount - 1] ?? 0
    const whole = end - start <= SLICED_HEAD_BYTES_MAX ? llhttp.text(start, end) : null
    for (let i = 0; i < spanCount; i += 3) {
      const kind = spans[i]
      const from = spans[i + 1] ?? 0
      const to = spans[i + 2] ?? 0
      // Copy the target, because records of calls retain it longer than the head.
      const text =
        whole === null || kind === SPAN.target ? llhttp.text(from, to) : whole.slice(from - start, to - start)
      if (kind === SPAN.field || kind === SPAN.value) this.#addLine(kind, text)
      else if (kind === SPAN.reason) this.reason += text
      else this.target += text
    }
    spanCount = 0
    return this.lines.length <= 2 * limits.headLinesMax
  }

  /** False for RTSP and ICE, which llhttp reads too. It has checked the name, so the first letter is enough. */
  isHttp(llhttp: Llhttp, runEnd: number): boolean {
    if (this.#protocolAt === -1) return true
    const letter = llhttp.firstLetter(this.#protocolAt, runEnd)
    // The name, or the rest of the target, comes with the next bytes.
    this.#protocolAt = letter === null ? 0 : -1
    return letter === null || letter === 'H'
  }

  takeLines(): string[] {
    const { lines } = this
    this.lines = []
    for (let i = 1; i < lines.length; i += 2) lines[i] = trimEndBlanks(lines[i] ?? '')
    return lines
  }

  /** Adds a name or a value. Names have even indexes; a text at the wrong index continues the previous one. */
  #addLine(kind: SpanKind, text: string): void {
    const { lines } = this
    const isNext = lines.length % 2 === (kind === SPAN.field ? 0 : 1)
    if (isNext) lines.push(text)
    else lines[lines.length - 1] += text
  }
}

/** The value without trailing spaces. A regular expression would take quadratic time for many spaces. */
function trimEndBlanks(value: string): string {
  let end = value.length
  while (end > 0 && isBlank(value.charCodeAt(end - 1))) end -= 1
  return end === value.length ? value : value.slice(0, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}
