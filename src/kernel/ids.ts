import { createHash, randomFillSync } from 'node:crypto'
import type { Clock } from './clock.ts'

/** ULIDs: text order is time order. The ids of one process strictly increase, even if the clock steps back. */

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const TIME_CHARS = 10
const RANDOM_CHARS = 16

export type IdSource = () => string

/** Random bytes are generated for this many ids at once, because the native call costs more than the bytes. */
const DRAWN_IDS = 256

export function createUlidSource(clock: Clock): IdSource {
  const random = new Uint8Array(RANDOM_CHARS)
  const drawn = new Uint8Array(RANDOM_CHARS * DRAWN_IDS)
  let used = drawn.length
  let lastMs = -1
  let timeText = ''

  return function nextUlid(): string {
    const nowMs = clock.nowMs()
    if (nowMs > lastMs) {
      lastMs = nowMs
      timeText = encodeTime(nowMs)
      if (used === drawn.length) {
        randomFillSync(drawn)
        used = 0
      }
      for (let i = 0; i < RANDOM_CHARS; i++) random[i] = (drawn[used++] ?? 0) & 31
      // The top bits start at zero, so the number cannot overflow when it is incremented.
      random[0] = (random[0] ?? 0) & 15
    } else {
      increment(random)
    }
    let text = timeText
    for (let i = 0; i < RANDOM_CHARS; i++) text += ALPHABET[random[i] ?? 0]
    return text
  }
}

/** A deterministic id with the timestamp of `id`, for a part of that object. */
export function childIdOf(id: string, name: string): string {
  const digest = createHash('sha256').update(`${id} ${name}`).digest()
  let text = id.slice(0, -RANDOM_CHARS)
  for (let i = 0; i < RANDOM_CHARS; i++) text += ALPHABET[(digest[i] ?? 0) & 31]
  return text
}

function increment(digits: Uint8Array): void {
  for (let i = digits.length - 1; i >= 0; i--) {
    const digit = (digits[i] ?? 0) + 1
    if (digit < 32) {
      digits[i] = digit
      return
    }
    digits[i] = 0
  }
}

function encodeTime(ms: number): string {
  let text = ''
  let rest = ms
  for (let i = 0; i < TIME_CHARS; i++) {
    text = ALPHABET[rest % 32] + text
    rest = Math.floor(rest / 32)
  }
  return text
}

export function firstUlid(ms: number): string {
  return encodeTime(Math.max(0, ms)) + '0'.repeat(RANDOM_CHARS)
}

const ULID = /([0-7][0-9A-HJKMNP-TV-Z]{9})[0-9A-HJKMNP-TV-Z]{16}$/

/** When the id was created, by its node's clock; null if the id has another form. */
export function requestInstantMs(requestId: string): number | null {
  const time = ULID.exec(requestId)?.[1]
  if (time === undefined) return null
  const ms = [...time].reduce((sum, character) => sum * 32 + ALPHABET.indexOf(character), 0)
  return ms <= LAST_MS ? ms : null
}

const LAST_MS = Date.UTC(9999, 11, 1)
