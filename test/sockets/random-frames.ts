import { Random } from '../support/random.ts'
import { chunksOf, type Side, sequenceOf, singleBytes, type WireFrame } from './wire-frames.ts'

/** Bytes of one direction and their chunks, determined by the seed alone. */
export interface RandomFrames {
  readonly from: Side
  readonly bytes: Buffer
  readonly chunks: readonly Buffer[]
}

const TEXTS = ['', 'a', 'Hello', '{"type":"response.create"}', 'ä€𐍈', '\u0000', '{"a":"'.repeat(30)]
const LENGTHS = [0, 1, 2, 3, 7, 64, 125, 126, 127, 128, 300]
const CLOSE_CODES = [
  999, 1000, 1001, 1003, 1004, 1005, 1006, 1007, 1011, 1014, 1015, 2999, 3000, 4999, 5000, 65_535,
]

/** Mostly valid sequences with some wrong bits, bytes or frames. */
export function randomFrames(seed: number): RandomFrames {
  const random = new Random(seed)
  const from = random.pick(['client', 'server'] as const)
  const frames = Array.from({ length: random.from(1, 5) }, () => randomMessage(random)).flat()
  if (random.oneIn(8)) frames.push(...frames.splice(random.below(frames.length), 1))
  const keyed = frames.map((frame) => (from === 'client' ? { ...frame, key: randomBytes(random, 4) } : frame))
  const bytes = mutated(random, sequenceOf(from, keyed))
  return { from, bytes, chunks: randomChunks(random, bytes) }
}

function randomChunks(random: Random, bytes: Buffer): Buffer[] {
  if (random.oneIn(4)) return singleBytes(bytes)
  return chunksOf(
    bytes,
    Array.from({ length: random.below(8) }, () => random.below(bytes.length + 1)),
  )
}

function randomBytes(random: Random, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; at++) bytes[at] = random.below(256)
  return bytes
}

function randomMessage(random: Random): WireFrame[] {
  const opcode = random.pick([1, 1, 2])
  const text = Buffer.from(random.pick(TEXTS))
  const payload = opcode === 1 && !random.oneIn(20) ? text : randomBytes(random, random.pick(LENGTHS))
  const cuts = random.oneIn(2)
    ? []
    : Array.from({ length: random.below(4) }, () => random.below(payload.length + 1))
  const fragments = chunksOf(payload, cuts)
  return fragments.flatMap((fragment, i) => {
    const frame: WireFrame = {
      opcode: i === 0 ? opcode : 0,
      fin: i === fragments.length - 1 ? 1 : 0,
      payload: fragment,
      ...(random.oneIn(10) ? { lengthBits: random.pick([16, 64] as const) } : {}),
    }
    return random.oneIn(4) ? [randomControl(random), frame] : [frame]
  })
}

function randomControl(random: Random): WireFrame {
  if (!random.oneIn(6))
    return { opcode: random.pick([9, 10]), payload: randomBytes(random, random.pick([0, 1, 4, 125])) }
  const code = Buffer.alloc(2)
  code.writeUInt16BE(random.pick(CLOSE_CODES))
  const reason = random.oneIn(4) ? randomBytes(random, 5) : Buffer.from(random.pick(TEXTS).slice(0, 40))
  return { opcode: 8, payload: random.oneIn(3) ? '' : Buffer.concat([code, reason]) }
}

function mutated(random: Random, bytes: Buffer): Buffer {
  let out = Buffer.from(bytes)
  for (let times = random.pick([0, 0, 1, 1, 2, 4]); times > 0 && out.length > 0; times--) {
    const at = random.below(out.length)
    const kind = random.below(5)
    if (kind <= 1) out[at] = (out[at] ?? 0) ^ (1 << random.below(8))
    else if (kind === 2) out[at] = random.pick([0, 1, 0x7e, 0x7f, 0x80, 0xfe, 0xff, random.below(256)])
    else if (kind === 3) out = Buffer.concat([out.subarray(0, at), out.subarray(at + random.from(1, 4))])
    else out = Buffer.concat([out.subarray(0, at), randomBytes(random, random.from(1, 4)), out.subarray(at)])
  }
  return out
}
