import { syncBuiltinESMExports } from 'node:module'
import type { Transform } from 'node:stream'
import zlib from 'node:zlib'
import { ByteBudget, DecodingTurns, KeyShares } from '../../src/gateway/key-shares.ts'
import { firstValue } from '../../src/http/raw-headers.ts'

/** The mark of a well-behaved call in its header, and a word in all its texts. */
export const WELL = 'well-behaved'

/** The work of a gateway, in units; the figures of what is taken now are read when the parent asks. */
export interface JamWork {
  /** Decoders of bodies: how many were opened, and the bytes that came out of them. */
  decodersOpened: number
  decodedBytes: number
  /** The most bodies that were decoded at once. */
  decodingMost: number
  /** The most other bodies whose decoding began while a well-behaved body waited for its turn. */
  decodedBeforeMost: number
  /** Well-behaved bodies that were decoded. */
  wellDecoded: number
  /** The longest text that was parsed at once by the thread that serves all calls. */
  parsedCharsMost: number
  /** The most calls in flight of one key. */
  callsMost: number
  /** Figures of what is taken now. */
  keys: number
  bodyMemoryBytes: number
  decoding: number
  sockets: number
}

const work: JamWork = {
  decodersOpened: 0,
  decodedBytes: 0,
  decodingMost: 0,
  decodedBeforeMost: 0,
  wellDecoded: 0,
  parsedCharsMost: 0,
  callsMost: 0,
  keys: 0,
  bodyMemoryBytes: 0,
  decoding: 0,
  sockets: 0,
}

const budgets = new Set<ByteBudget>()
let shares: KeyShares | undefined
let turns: DecodingTurns | undefined

/** Counts work from now on, in a process that does nothing but serve. */
export function watchWork(): () => JamWork {
  watchDecoders()
  watchTurns()
  watchParsing()
  watchShares()
  return () => ({
    ...work,
    keys: shares?.size ?? 0,
    bodyMemoryBytes: [...budgets].reduce((sum, { takenBytes }) => sum + takenBytes, 0),
    decoding: (turns?.running ?? 0) + (turns?.waiting ?? 0),
    sockets: process.getActiveResourcesInfo().filter((what) => what === 'TCPSocketWrap').length,
  })
}

function watchDecoders(): void {
  for (const name of ['createGunzip', 'createBrotliDecompress', 'createZstdDecompress'] as const) {
    const create = zlib[name] as (...given: unknown[]) => Transform
    const watched = (...given: unknown[]) => {
      work.decodersOpened += 1
      const stream = create(...given)
      stream.on('data', (bytes: Buffer) => {
        work.decodedBytes += bytes.length
      })
      return stream
    }
    Object.defineProperty(zlib, name, { value: watched, configurable: true, enumerable: true })
  }
  syncBuiltinESMExports()
}

function watchTurns(): void {
  const { take } = DecodingTurns.prototype
  let begun = 0
  DecodingTurns.prototype.take = function (share, exchange, decode) {
    turns = this
    const isWell = firstValue(exchange.headers, 'x-jam') === WELL
    const before = begun
    return take.call(this, share, exchange, () => {
      work.decodingMost = Math.max(work.decodingMost, this.running)
      if (isWell) {
        work.wellDecoded += 1
        work.decodedBeforeMost = Math.max(work.decodedBeforeMost, begun - before)
      } else begun += 1
      return decode()
    }) as ReturnType<typeof decode>
  }
}

function watchParsing(): void {
  const { parse } = JSON
  JSON.parse = (text: string, reviver?: Parameters<typeof parse>[1]) => {
    work.parsedCharsMost = Math.max(work.parsedCharsMost, text.length)
    return parse(text, reviver)
  }
}

function watchShares(): void {
  const { enter } = KeyShares.prototype
  KeyShares.prototype.enter = function (digest) {
    shares = this
    const share = enter.call(this, digest)
    work.callsMost = Math.max(work.callsMost, share?.calls ?? 0)
    return share
  }
  const { tryTake } = ByteBudget.prototype
  ByteBudget.prototype.tryTake = function (...asked) {
    budgets.add(this)
    return tryTake.call(this, ...asked)
  }
}
