import { isObject, type JsonObject, parseJson } from './json.ts'
import { answerTokensMax, waitMsMax } from './limits.ts'

// Behaviours that a request can ask of the simulator through the header `x-simulator`, for example
// `x-simulator: tokens=40; cut=event:3`. The header passes through a gateway as any other header does.

export interface Behaviours {
  /** Answers with this error. */
  readonly status?: number
  /** Answers before the body was read. */
  readonly early?: boolean
  readonly reset?: boolean
  readonly delayMs?: number
  /** The pause between events. */
  readonly dripMs?: number
  /** Writes pieces of so many bytes. */
  readonly chunks?: number
  /** Compresses the reply with this coding if the client accepts it. */
  readonly encode?: string
  /** Breaks the connection after so many events or bytes. */
  readonly cut?: { readonly kind: string; readonly count: number }
  readonly noUsage?: boolean
  /** Merged into the reported usage. */
  readonly usage?: JsonObject
  readonly tier?: string
  readonly model?: string
  /** Ends a stream with an error event after so many deltas. */
  readonly errorEvent?: number
  /** The length of the answer. */
  readonly tokens?: number
  /** Names of declared tools to call, in this order. */
  readonly call?: readonly string[]
  /** A turn on a socket stops after so many events; the connection stays. */
  readonly stall?: number
  /** A turn on a socket closes the socket with `code` after `count` events. */
  readonly close?: { readonly code: number; readonly count: number }
}

/** The form of a value, and what it means. */
type Reader = readonly [
  form: RegExp,
  read: (value: string, first: string, second: string) => Behaviours | undefined,
]

const nothing = /^$/
const number = /^\d{1,9}$/
const name = /^[\w.:/-]{1,200}$/

const readers: Readonly<Record<string, Reader>> = {
  status: [/^[45]\d\d$/, (value) => ({ status: Number(value) })],
  early: [nothing, () => ({ early: true })],
  reset: [nothing, () => ({ reset: true })],
  delay: [number, (value) => ({ delayMs: Math.min(Number(value), waitMsMax) })],
  drip: [number, (value) => ({ dripMs: Math.min(Number(value), waitMsMax) })],
  chunks: [/^[1-9]\d{0,8}$/, (value) => ({ chunks: Number(value) })],
  encode: [/^(?:gzip|deflate|br|zstd)$/, (encode) => ({ encode })],
  cut: [/^(event|byte):(\d{1,9})$/, (_, kind, count) => ({ cut: { kind, count: Number(count) } })],
  'no-usage': [nothing, () => ({ noUsage: true })],
  usage: [/^\{.*\}$/s, readUsage],
  tier: [name, (tier) => ({ tier })],
  model: [name, (model) => ({ model })],
  'error-event': [number, (value) => ({ errorEvent: Number(value) })],
  tokens: [number, (value) => ({ tokens: Math.min(Number(value), answerTokensMax) })],
  call: [/^[\w.:,-]{1,2000}$/, (value) => ({ call: value.split(',') })],
  stall: [number, (value) => ({ stall: Number(value) })],
  close: [
    /^([134]\d{3}):(\d{1,9})$/,
    (_, code, count) => ({ close: { code: Number(code), count: Number(count) } }),
  ],
}

const behaviourNames: readonly string[] = Object.keys(readers)

/** Reads the header; a problem is the text of the error. */
export function parseBehaviours(header: string): { behaviours: Behaviours; problem?: string } {
  let behaviours: Behaviours = {}
  // A semicolon inside a JSON object separates nothing.
  for (const item of header.match(/(?:\{[^}]*\}+|[^;{])+/g) ?? []) {
    const [, asked = '', value = ''] = /^\s*([^=\s]+)\s*=?\s*(.*?)\s*$/s.exec(item) ?? []
    if (asked === '') continue
    const [form, read] = (Object.hasOwn(readers, asked) ? readers[asked] : undefined) ?? []
    const [matched, first = '', second = ''] = form?.exec(value) ?? []
    const understood = matched === undefined ? undefined : read?.(value, first, second)
    if (understood === undefined) {
      const known = behaviourNames.join(', ')
      return { behaviours, problem: `x-simulator: cannot read '${item.trim()}'. Behaviours: ${known}` }
    }
    behaviours = { ...behaviours, ...understood }
  }
  return { behaviours }
}

function readUsage(value: string): Behaviours | undefined {
  const usage = parseJson(value)
  return isObject(usage) ? { usage } : undefined
}
