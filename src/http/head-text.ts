/** What a head says by its lines about its own framing; only what stands there is true. */
export interface HeadLines {
  readonly hasLength: boolean
  readonly hasCoding: boolean
  readonly hasDate: boolean
}

export function linesSay(lines: readonly string[]): HeadLines {
  let hasLength = false
  let hasCoding = false
  let hasDate = false
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] ?? ''
    switch (name.length) {
      case 4:
        hasDate ||= name.toLowerCase() === 'date'
        break
      case 14:
        hasLength ||= name.toLowerCase() === 'content-length'
        break
      case 17:
        hasCoding ||= name.toLowerCase() === 'transfer-encoding'
        break
    }
  }
  return { hasLength, hasCoding, hasDate }
}

/**
 * Header lines as they are sent. A line end within one would end it for whoever reads it, so a value with one is a
 * defect of whoever made it.
 */
export function textOf(lines: readonly string[]): string {
  let text = ''
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] ?? ''
    const value = lines[i + 1] ?? ''
    if (breaksOut(name) || breaksOut(value)) throw new Error(`a header line cannot be sent: ${name}`)
    text += `${name}: ${value}\r\n`
  }
  return text
}

/** Characters above 0xff would lose their upper half when they are written, and some become line ends. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/

function breaksOut(text: string): boolean {
  return UNSENDABLE.test(text)
}

let dateText = ''
let dateUntilMs = 0

/** `Date` is told in seconds, and made once in each. */
export function dateLine(nowMs: number): string {
  if (nowMs >= dateUntilMs) {
    dateUntilMs = nowMs - (nowMs % 1_000) + 1_000
    dateText = `Date: ${new Date(nowMs).toUTCString()}\r\n`
  }
  return dateText
}
