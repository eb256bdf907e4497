import type { Tier } from '../kernel/usage.ts'
import type { Mode } from './price-file.ts'
import type { RateKey, ToolKey } from './rate-keys.ts'

/** What a public price catalog says about a model, in our words. What it does not say is absent, never zero. */
export interface CatalogModel {
  readonly id: string
  readonly provider: string
  readonly mode?: Mode
  readonly aliases?: readonly string[]
  readonly contextWindowTokens?: number
  readonly maxOutputTokens?: number
  readonly tiers: ReadonlyMap<Tier, CatalogRates>
  readonly longContextAbove?: number
  readonly regionalUplift?: string
  readonly geography?: Readonly<Record<string, string>>
  readonly tools?: Readonly<Partial<Record<ToolKey, string>>>
}

export interface CatalogRates {
  readonly short: Readonly<Partial<Record<RateKey, string>>>
  readonly long: Readonly<Partial<Record<RateKey, string>>>
}

export interface Catalog {
  readonly source: 'genai-prices' | 'litellm'
  readonly models: readonly CatalogModel[]
  /** What was left out, and why. */
  readonly notes: readonly string[]
}

/** The providers whose surfaces the gateway has; the catalogs list some hundred more. */
export const PROVIDERS: readonly string[] = ['anthropic', 'openai']

const PLACES = 9n

/**
 * A JSON number times a factor, as a plain decimal, or null if it is no price. The shortest text that gives the
 * number again is what the catalog's author wrote; what float arithmetic left behind the ninth place is rounded off.
 */
export function decimalOf(given: unknown, factor = 1n): string | null {
  if (typeof given !== 'number' || !Number.isFinite(given) || given < 0) return null
  const match = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(given))
  if (match === null) return null
  const [, whole = '', fraction = '', exponent = '0'] = match
  const shift = BigInt(exponent) - BigInt(fraction.length) + PLACES
  if (shift > 60n || shift < -400n) return null
  const digits = BigInt(whole + fraction) * factor
  const scaled = shift >= 0n ? digits * 10n ** shift : roundedQuotient(digits, 10n ** -shift)
  const unit = 10n ** PLACES
  if (scaled >= unit * 1_000_000_000n) return null
  const places = (scaled % unit).toString().padStart(Number(PLACES), '0').replace(/0+$/, '')
  return (scaled / unit).toString() + (places === '' ? '' : `.${places}`)
}

function roundedQuotient(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor)
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A limit as a whole number of tokens, if it is one. */
export function tokensOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 2 ** 31
    ? value
    : undefined
}

/** Members without a value are left out, so that they do not hide what the book knows. */
export function defined<T extends object>(
  members: T,
): { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
} {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never
}
