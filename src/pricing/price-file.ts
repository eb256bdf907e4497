import { z } from 'zod'
import { parseUsd } from '../kernel/money.ts'
import { instantMs, RATE_KEYS, type RateKey, TOOL_KEYS, type ToolKey } from './rate-keys.ts'

/**
 * The format of price files. A book has complete versions; an overlay changes what it names. Unknown members are
 * refused in both: a mistyped rate must not become a missing one.
 */

const decimal = z.unknown().transform((given, context): string => {
  if (typeof given === 'string' && /^\d{1,9}(?:\.\d{1,9})?$/.test(given)) return given
  context.addIssue(whyNoDecimal(given))
  return z.NEVER
})

function whyNoDecimal(given: unknown): string {
  if (typeof given === 'number') {
    return `is the number ${given}, a binary fraction: write the decimal in quotes, such as "${plain(given)}"`
  }
  if (typeof given !== 'string') return 'must be a decimal in quotes, such as "0.25"'
  if (given.startsWith('-')) return `is "${given}", and a price is never negative`
  if (/^\d{1,9}\.\d{10,}$/.test(given)) return `is "${given}", with more than 9 decimals`
  return `is "${given}", which is not a plain decimal such as "0.25"`
}

function plain(given: number): string {
  return Number.isFinite(given) && given >= 0 ? String(given) : '0.25'
}

const multiplier = decimal.refine((text) => (parseUsd(text) ?? 0n) > 0n, 'must be more than 0')

/** Token limits of a model. 2^31 is far above any real limit and small enough for exact sums. */
const tokens = z
  .number({ error: 'must be a whole number of tokens' })
  .int('must be a whole number of tokens')
  .min(0, 'must not be negative')
  .max(2 ** 31, 'must be at most 2147483648')

const endpoint = z.string().startsWith('/v1/', 'must begin with /v1/')

const name = z
  .string({ error: 'must be a text' })
  .regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters without spaces')

/** An absent or null rate does not exist: its unit is rated at a higher rate and flagged. */
const rateShape = Object.fromEntries(RATE_KEYS.map((key) => [key, decimal.nullish()])) as Record<
  RateKey,
  z.ZodOptional<z.ZodNullable<typeof decimal>>
>
const toolShape = Object.fromEntries(TOOL_KEYS.map((key) => [key, decimal.nullish()])) as Record<
  ToolKey,
  z.ZodOptional<z.ZodNullable<typeof decimal>>
>

const ratesOfOneLength = z.strictObject(rateShape)
const tariff = z.strictObject({ ...rateShape, long_context: ratesOfOneLength.optional() })
const rateTable = z.strictObject({
  /** Prompts of more tokens than this are rated at `long_context`, the whole request. */
  long_context_above: tokens.optional(),
  standard: tariff,
  batch: tariff.optional(),
  flex: tariff.optional(),
  priority: tariff.optional(),
  fast: tariff.optional(),
  ultrafast: tariff.optional(),
})
const tools = z.strictObject(toolShape)

const MODES = [
  'chat',
  'responses',
  'completion',
  'embedding',
  'image',
  'audio_speech',
  'audio_transcription',
  'audio_translation',
  'realtime',
  'moderation',
] as const

const modelMembers = {
  /** Names that mean this model. They match exactly, never by prefix. */
  aliases: z.array(name).max(200).optional(),
  mode: z.enum(MODES, `must be one of ${MODES.join(', ')}`).optional(),
  /** No longer served upstream. It stays in the book so that past calls can be rerated. */
  retired: z.boolean({ error: 'must be true or false' }).optional(),
  context_window_tokens: tokens.nullish(),
  max_output_tokens: tokens.nullish(),
  endpoints: z.record(endpoint, rateTable).optional(),
  /** The model searches the web for every answer, and no reply says so. */
  searches_each_call: z.boolean({ error: 'must be true or false' }).optional(),
  tools: tools.optional(),
  /** Factors for all tokens: by reported geography, and on single-region hosts. */
  geography: z.record(name, multiplier).optional(),
  regional_uplift: multiplier.nullish(),
}

const bookModel = z.strictObject({ id: name, provider: name, rates: rateTable, ...modelMembers })
/** Members of an existing model that an overlay omits stay; `rates` are replaced as a whole. */
const overlayModel = z.strictObject({
  id: name,
  provider: name.optional(),
  rates: rateTable.optional(),
  ...modelMembers,
})

const instant = z
  .string({ error: 'must be a text such as "2026-12-01T00:00:00Z"' })
  .regex(
    /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,3})?Z)?$/,
    'must be a UTC date or instant such as "2026-12-01" or "2026-12-01T00:00:00Z"',
  )
  .refine((text) => isInstant(text), 'is no date of the calendar')

const toolsByProvider = z.record(name, tools)

export const bookFile = z.strictObject({
  versions: z
    .array(
      z.strictObject({
        id: name,
        effective_from: instant,
        default_models: z.record(endpoint, name).optional(),
        tools: toolsByProvider,
        models: z.array(bookModel).max(20_000),
      }),
    )
    .min(1, 'must hold at least one version')
    .max(1_000),
})

const overlay = z.strictObject({
  /** When the overlay takes effect. Absent: always. */
  effective_from: instant.optional(),
  /** Null removes a default model. */
  default_models: z.record(endpoint, name.nullable()).optional(),
  tools: toolsByProvider.optional(),
  models: z.array(overlayModel).max(20_000).optional(),
})

export const overlayFile = overlay
export const overlayListFile = z.array(overlay).max(1_000)

export type BookVersionEntry = z.output<typeof bookFile>['versions'][number]
export type ModelEntry = z.output<typeof bookModel>
export type OverlayEntry = z.output<typeof overlay>
export type OverlayModelEntry = z.output<typeof overlayModel>
export type RateTableEntry = z.output<typeof rateTable>
export type TariffEntry = z.output<typeof tariff>
export type Mode = (typeof MODES)[number]

/** Date.parse turns the 31st of a short month into a day of the next month. */
function isInstant(text: string): boolean {
  const ms = instantMs(text)
  return Number.isFinite(ms) && new Date(ms).toISOString().startsWith(text.slice(0, 10))
}

export type JsonPath = readonly PropertyKey[]

/** How many problems are reported. */
const PROBLEMS_MAX = 50

/** Collects the problems of a price file, each with its path, so that all of them can be fixed at once. */
export class PriceProblems {
  readonly #found: string[] = []
  #left = 0

  get hasSome(): boolean {
    return this.#found.length > 0
  }

  get list(): readonly string[] {
    return this.#left === 0 ? this.#found : [...this.#found, `and ${this.#left} more`]
  }

  add(path: JsonPath, message: string): void {
    if (this.#found.length >= PROBLEMS_MAX) {
      this.#left++
      return
    }
    const where = pathText(path)
    this.#found.push(where === '' ? `the document ${message}` : `${where}: ${message}`)
  }

  addIssues(error: z.ZodError): void {
    for (const issue of error.issues) {
      if (issue.code === 'unrecognized_keys') {
        for (const key of issue.keys) this.add([...issue.path, key], 'is not a member of price files')
      } else if (issue.code === 'invalid_key') {
        this.add(issue.path, issue.issues.map((inner) => inner.message).join('; '))
      } else if (issue.code === 'invalid_type') {
        this.add(issue.path, typeProblem(issue))
      } else this.add(issue.path, lowered(issue.message))
    }
  }
}

function typeProblem(issue: Extract<z.core.$ZodIssue, { code: 'invalid_type' }>): string {
  if (issue.input === undefined) return 'is missing'
  return issue.message.startsWith('Invalid input') ? `must be of type ${issue.expected}` : issue.message
}

/** Zod's messages begin with a capital; ours continue after the path. */
function lowered(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1)
}

function pathText(path: JsonPath): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += text === '' ? String(step) : `.${String(step)}`
  }
  return text
}
