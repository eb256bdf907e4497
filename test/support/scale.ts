/** TEST_SCALE of `npm run test:long`, which reaches every maximum: all property runs, a cut at every byte. */
export const FULL_SCALE = 34

const scale = Number(process.env['TEST_SCALE'] ?? 1)

/** Runs of a property: a third in the suite, all at full scale. */
export const runs = (full: number): number => scaled(Math.ceil(full / 3), full)

export function scaled(quick: number, full: number): number {
  return Math.min(full, Math.round(quick * scale))
}

/** Cuts around the end of every line, and every 17th byte from a random one. Every byte at full scale. */
export function cutsOf(bytes: Uint8Array): readonly number[] {
  const isDue = everyNth(17)
  const isNearEnd = (at: number) => [at - 2, at - 1, at].some((near) => bytes[near] === LINE_FEED)
  return Array.from(bytes.keys()).filter((at) => isDue(at) || isNearEnd(at))
}

/** Whether the case with this number is tested: every n-th, from a random one. Every case at full scale. */
export function everyNth(nth: number): (at: number) => boolean {
  const step = Math.max(1, Math.floor(nth / scale))
  const first = Math.floor(Math.random() * step)
  return (at) => at % step === first
}

const LINE_FEED = 10
