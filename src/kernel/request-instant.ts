const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Ids end in a ULID, and that begins with ten characters of milliseconds. */
const ULID = /([0-7][0-9A-HJKMNP-TV-Z]{9})[0-9A-HJKMNP-TV-Z]{16}$/

/** When the id was made, by the clock of the node that made it; null if the id is of another form. */
export function requestInstantMs(requestId: string): number | null {
  const time = ULID.exec(requestId)?.[1]
  if (time === undefined) return null
  const ms = [...time].reduce((sum, character) => sum * 32 + ALPHABET.indexOf(character), 0)
  return ms <= LAST_MS ? ms : null
}

/** Years of four digits. */
const LAST_MS = Date.UTC(9999, 11, 1)
