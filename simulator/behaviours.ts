import { isObject, type JsonObject } from './json.ts'
import { answerTokensMax, behaviourCharactersMax, waitMsMax } from './limits.ts'

// Behaviours that a request can ask of the simulator through the header `x-simulator`, for example
// `x-simulator: chunks=1; cut=event:3`. The header passes through a gateway as any other header does.

export type Coding = 'gzip' | 'br' | 'deflate' | 'zstd'
export type Chunks = { kind: 'sized'; bytes: number } | { kind: 'random'; seed: number }
export type Cut = { kind: 'event'; count: number } | { kind: 'byte'; count: number } | { kind: 'mid-event' }

export interface Behaviours {
  readonly status?: number
  readonly early?: boolean
  readonly reset?: boolean
  readonly delayMs?: number
  readonly dripMs?: number
  readonly chunks?: Chunks
  readonly framing?: 'chunked'
  readonly cut?: Cut
  readonly encode?: Coding
  readonly noUsage?: boolean
  readonly usage?: JsonObject
  readonly tier?: string
  readonly speed?: string
  readonly geo?: string
  readonly model?: string
  readonly errorEvent?: number
  readonly tokens?: number
  readonly refusal?: boolean
  /** Names of declared tools to call, one after the other; a name that is given twice is called twice. */
  readonly call?: readonly string[]
  /** A turn on a socket stalls after this many events: nothing more is sent, but the connection stays. */
  readonly stall?: number
  /** A turn on a socket sends a message that is no JSON after this many events. */
  readonly garbage?: number
  /** A turn on a socket closes the socket with `code` after `count` events. */
  readonly close?: { readonly code: number; readonly count: number }
}

export type ParsedBehaviours = { ok: true; behaviours: Behaviours } | { ok: false; problem: string }

export const statuses: readonly number[] = [400, 401, 403, 404, 409, 413, 429, 500, 503, 529]
const codings: readonly Coding[] = ['gzip', 'br', 'deflate', 'zstd']

/** Reads a value into the behaviours it stands for, or returns undefined when the value makes no sense. */
type Reader = (value: string) => Behaviours | undefined

const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['status', (value) => (statuses.includes(Number(value)) ? { status: Number(value) } : undefined)],
  ['early', flag({ early: true })],
  ['reset', flag({ reset: true })],
  ['no-usage', flag({ noUsage: true })],
  ['refusal', flag({ refusal: true })],
  ['delay', (value) => integer(value, 0, waitMsMax, (delayMs) => ({ delayMs }))],
  ['drip', (value) => integer(value, 0, waitMsMax, (dripMs) => ({ dripMs }))],
  ['tokens', (value) => integer(value, 0, answerTokensMax, (tokens) => ({ tokens }))],
  ['error-event', (value) => integer(value, 0, answerTokensMax, (errorEvent) => ({ errorEvent }))],
  ['stall', (value) => integer(value, 0, answerTokensMax, (stall) => ({ stall }))],
  ['garbage', (value) => integer(value, 0, answerTokensMax, (garbage) => ({ garbage }))],
  ['close', readClose],
  ['call', (value) => (/^[\w.:,-]{1,2000}$/.test(value) ? { call: value.split(',') } : undefined)],
  ['chunks', readChunks],
  ['framing', (value) => (value === 'chunked' ? { framing: value } : undefined)],
  ['cut', readCut],
  ['encode', readCoding],
  ['usage', readUsage],
  ['tier', (value) => word(value, (tier) => ({ tier }))],
  ['speed', (value) => word(value, (speed) => ({ speed }))],
  ['geo', (value) => word(value, (geo) => ({ geo }))],
  ['model', (value) => word(value, (model) => ({ model }))],
])

export const behaviourNames: readonly string[] = [...readers.keys()]

export function parseBehaviours(header: string): ParsedBehaviours {
  if (header.length > behaviourCharactersMax) {
    return { ok: false, problem: `x-simulator is longer than ${behaviourCharactersMax} characters` }
  }
  let behaviours: Behaviours = {}
  for (const item of splitList(header)) {
    const equals = item.indexOf('=')
    const name = equals === -1 ? item : item.slice(0, equals).trim()
    const value = equals === -1 ? '' : item.slice(equals + 1).trim()
    const read = readers.get(name)
    if (read === undefined) {
      return {
        ok: false,
        problem: `x-simulator: unknown behaviour '${name}', expected one of ${behaviourNames.join(', ')}`,
      }
    }
    const understood = read(value)
    if (understood === undefined) {
      return { ok: false, problem: `x-simulator: behaviour '${name}' does not take the value '${value}'` }
    }
    behaviours = { ...behaviours, ...understood }
  }
  return { ok: true, behaviours }
}

/** Splits the header at semicolons, but not at semicolons inside a JSON string. */
function splitList(header: string): string[] {
  const items: string[] = []
  let item = ''
  let quoted = false
  for (let at = 0; at < header.length; at += 1) {
    const character = header.charAt(at)
    if (quoted && character === '\\') {
      item += character + header.charAt(at + 1)
      at += 1
      continue
    }
    if (character === '"') quoted = !quoted
    if (character === ';' && !quoted) {
      items.push(item)
      item = ''
    } else {
      item += character
    }
  }
  items.push(item)
  return items.map((part) => part.trim()).filter((part) => part !== '')
}

function flag(behaviours: Behaviours): Reader {
  return (value) => {
    if (value === '' || value === '1') return behaviours
    return value === '0' ? {} : undefined
  }
}

function integer(
  value: string,
  min: number,
  max: number,
  use: (number: number) => Behaviours,
): Behaviours | undefined {
  if (!/^\d{1,9}$/.test(value)) return undefined
  const number = Number(value)
  return number >= min && number <= max ? use(number) : undefined
}

function word(value: string, use: (word: string) => Behaviours): Behaviours | undefined {
  return /^[\w.:/-]{1,200}$/.test(value) ? use(value) : undefined
}

function readChunks(value: string): Behaviours | undefined {
  const random = /^random:(\d{1,9})$/.exec(value)
  if (random !== null) return { chunks: { kind: 'random', seed: Number(random[1]) } }
  return integer(value, 1, 999_999_999, (bytes) => ({ chunks: { kind: 'sized', bytes } }))
}

function readCut(value: string): Behaviours | undefined {
  if (value === 'mid-event') return { cut: { kind: 'mid-event' } }
  const counted = /^(event|byte):(\d{1,9})$/.exec(value)
  if (counted === null) return undefined
  return { cut: { kind: counted[1] === 'event' ? 'event' : 'byte', count: Number(counted[2]) } }
}

function readClose(value: string): Behaviours | undefined {
  const [, code, count] = /^(1\d{3}|[34]\d{3}):(\d{1,9})$/.exec(value) ?? []
  return code === undefined ? undefined : { close: { code: Number(code), count: Number(count) } }
}

function readCoding(value: string): Behaviours | undefined {
  const encode = codings.find((coding) => coding === value)
  return encode === undefined ? undefined : { encode }
}

function readUsage(value: string): Behaviours | undefined {
  try {
    const usage: unknown = JSON.parse(value)
    return isObject(usage) ? { usage } : undefined
  } catch {
    return undefined
  }
}
