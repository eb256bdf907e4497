import { NANOS_PER_USD } from '../kernel/money.ts'
import type { Surface } from '../kernel/surface.ts'
import type { Tier, Usage } from '../kernel/usage.ts'
import type { RequestLimits } from '../providers/request-limits.ts'
import { SURFACES } from '../providers/surfaces.ts'

/** The facts of a call that rating needs beside the usage: how the call was made. */
export interface RatingContext {
  readonly surface: Surface
  readonly modelAsked: string | null
  /** The template of the endpoint, such as `/v1/chat/completions`. */
  readonly endpoint: string
  /** The upstream host processes in one region only. */
  readonly regional: boolean
  /** The usage is that of an entry of a batch. */
  readonly batch: boolean
  /** The model that the image tool of the request names. Upstream does not repeat that name. */
  readonly imageToolModel?: string | null
  /**
   * The service tier that the request asked for, else the one that the upstream project gives to requests that ask for
   * none: the tier of a call whose reply states none. Null where neither is known.
   */
  readonly tierAsked?: string | null
}

/** The limits that a request sets for its cost, and what it is for. */
export interface BoundRequest
  extends Omit<RequestLimits, 'speed' | 'background' | 'stored' | 'refersElsewhere'> {
  readonly surface: Surface
  /** The template of the endpoint, such as `/v1/messages`. */
  readonly endpoint: string
  /** Null where the request names no model: it may come from a stored prompt or conversation. */
  readonly model: string | null
  /** The length of the decoded body. */
  readonly bodyBytes: number
}

export interface BoundSettings {
  /** The tier that `auto` and no service tier at all mean where the upstream project has a tier for them. */
  readonly defaultTier: string | null
  readonly regional: boolean
  /** A default of the upstream workspace may choose where inference runs. */
  readonly geographyPossible: boolean
  /** The request is one of a batch. */
  readonly batch?: boolean
}

export interface ReportedTier {
  readonly tier: Tier
  /** False for tiers that are not in the surface's tables: such calls are rated as standard, and flagged. */
  readonly known: boolean
}

const STANDARD: ReportedTier = { tier: 'standard', known: true }
const BATCH: ReportedTier = { tier: 'batch', known: true }
const NOT_KNOWN: ReportedTier = { tier: 'standard', known: false }

/** The tier whose rates a call is rated with, by upstream's names for its tier and its speed. */
export function tierOf(
  surface: Surface,
  said: { readonly serviceTier: string | null; readonly speed: string | null; readonly batch: boolean },
): ReportedTier {
  if (said.batch) return BATCH
  const { tiers, speeds } = SURFACES[surface].pricing
  const tier = lookUp(tiers, said.serviceTier)
  // Batches have no speed.
  if (speeds === null || tier.tier === 'batch') return tier
  const speed = lookUp(speeds, said.speed)
  return tier.known ? speed : { tier: speed.tier, known: false }
}

function lookUp(words: Readonly<Record<string, Tier>>, word: string | null): ReportedTier {
  if (word === null) return STANDARD
  // The word is upstream's or the client's: it may be the name of a member that every object has.
  const tier = Object.hasOwn(words, word) ? words[word] : undefined
  return tier === undefined ? NOT_KNOWN : { tier, known: true }
}

/** Factors and discounts are decimals with at most nine places, kept as whole billionths. */
export const ONE = NANOS_PER_USD

/** The factors of one modifier that a model's entry states, in billionths, by name; a factor without a name is under ''. */
export type Factors = ReadonlyMap<string, bigint>

/** A factor on every token of a call. Tools, which are priced by the call, are left alone. */
interface Modifier {
  /** Whether an entry of a price file states one factor for the modifier, or several by name. */
  readonly stated: 'one' | 'by_name'
  /** The name of the modifier in `tollgate prices`. */
  readonly label: string
  /** The name of the factor that applies to a call, or null where none does. */
  nameOf(usage: Usage, context: RatingContext): string | null
  /** The largest factor that may apply to a call which has not gone yet. */
  most(factors: Factors, request: BoundRequest, settings: BoundSettings): bigint
  /** The modifier in words, for a line of a rating. */
  describe(name: string, factor: string): string
}

/** The one geography that is not dearer than others; another name may be another spelling of a dearer geography. */
const ANYWHERE = 'global'

/** The modifiers, by the member of a model in price files that states their factors. */
export const MODIFIERS = {
  /** The geography where upstream says that inference ran. */
  geography: {
    stated: 'by_name',
    label: 'geography',
    nameOf: ({ geography }) => geography,
    most(factors, { geography }, { geographyPossible }) {
      const isPossible = geography === null ? geographyPossible : geography !== ANYWHERE
      let most = ONE
      if (isPossible) for (const factor of factors.values()) most = maxRate(most, factor)
      return most
    },
    describe: (name, factor) => `geography ${name} × ${factor}`,
  },
  /** The upstream host processes in one region only. */
  regional_uplift: {
    stated: 'one',
    label: 'regional hosts',
    nameOf: (_usage, { regional }) => (regional ? '' : null),
    most: (factors, _request, { regional }) => (regional ? (factors.get('') ?? ONE) : ONE),
    describe: (_name, factor) => `regional × ${factor}`,
  },
} as const satisfies Record<string, Modifier>

export type ModifierName = keyof typeof MODIFIERS

export const MODIFIER_NAMES = Object.keys(MODIFIERS) as readonly ModifierName[]

/** The product of all modifiers where each of them is 1. */
export const MULTIPLIER_ONE = ONE ** BigInt(MODIFIER_NAMES.length)

/** All factors that a model's entry states. */
export type ModelFactors = Readonly<Record<ModifierName, Factors>>

/** The factors of a model as they stand in its entry of a price file. */
export function factorsIn(entry: StatedFactors, member: ModifierName): [name: string, factor: string][] {
  const stated = entry[member] ?? {}
  return typeof stated === 'string' ? [['', stated]] : Object.entries(stated)
}

type StatedFactors = {
  readonly [M in ModifierName]?: string | Readonly<Record<string, string>> | null | undefined
}

/** The factors that apply to a call, all multiplied: over `MULTIPLIER_ONE`. */
export function multiplierOf(factors: ModelFactors, usage: Usage, context: RatingContext): bigint {
  return product((name, modifier) => factorOf(factors[name], modifier.nameOf(usage, context)))
}

/** The largest factors that may apply to a call, all multiplied: over `MULTIPLIER_ONE`. */
export function multiplierMax(factors: ModelFactors, request: BoundRequest, settings: BoundSettings): bigint {
  return product((name, modifier) => modifier.most(factors[name], request, settings))
}

function product(factor: (name: ModifierName, modifier: Modifier) => bigint): bigint {
  let product = MULTIPLIER_ONE
  for (const name of MODIFIER_NAMES) {
    const own = factor(name, MODIFIERS[name])
    // Nearly all factors are 1, and a multiplication of bigints allocates a new one.
    if (own !== ONE) product = (product / ONE) * own
  }
  return product
}

/** The modifiers of a call whose factor is not 1, in words. */
export function describeModifiers(
  factors: ModelFactors,
  usage: Usage,
  context: RatingContext,
  format: (factor: bigint) => string,
): string[] {
  return MODIFIER_NAMES.flatMap((member) => {
    const modifier: Modifier = MODIFIERS[member]
    const name = modifier.nameOf(usage, context)
    const factor = factorOf(factors[member], name)
    return factor === ONE ? [] : [modifier.describe(name ?? '', format(factor))]
  })
}

function factorOf(factors: Factors, name: string | null): bigint {
  return (name === null ? undefined : factors.get(name)) ?? ONE
}

export function maxRate(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
