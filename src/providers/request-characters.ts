/** The speech models that are sold by the character of their input. Nothing of that is on the wire. */
const SOLD_BY_CHARACTER = /^tts-1(?:-hd)?(?:-\d{4})?$/

/** How many characters a speech request is billed for, or null if its model is not sold that way. */
export function charactersSold(model: string | null, body: Buffer | null): number | null {
  if (model === null || body === null || !SOLD_BY_CHARACTER.test(model)) return null
  try {
    const { input } = JSON.parse(body.toString('utf8')) as { input?: unknown }
    // Characters as people count them, not UTF-16 units.
    return typeof input === 'string' ? [...input].length : null
  } catch {
    return null
  }
}
