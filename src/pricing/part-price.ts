import type { Quantities, Unit } from '../kernel/usage.ts'
import type { Multipliers } from './exact-amount.ts'
import { type FoundRate, findRate, type Tariffs } from './find-rate.ts'
import type { ModelPrice } from './price-book.ts'
import { UNITS_OF } from './rate-keys.ts'

/** What a part of the usage goes by. */
export interface PartPrice {
  readonly model: ModelPrice
  /** Upstream named a tier that is known. */
  readonly tierKnown: boolean
  readonly tariffs: Tariffs
  readonly multipliers: Multipliers
}

/** Metering promises whole numbers; what is none must not become a credit, nor end the process in BigInt(). */
export function quantityOf(quantities: Quantities, unit: Unit): number {
  const quantity = quantities[unit] ?? 0
  return Number.isSafeInteger(quantity) && quantity > 0 ? quantity : 0
}

const TOOLS: ReadonlySet<Unit> = new Set(UNITS_OF.tool)

/** What is priced by the call: tiers and multipliers leave it alone. */
export function isTool(unit: Unit): boolean {
  return TOOLS.has(unit)
}

/** The rate that a unit of the part goes by. */
export function rateOf({ model, tariffs }: PartPrice, unit: Unit): FoundRate {
  return isTool(unit) ? findTool(model, unit) : findRate(tariffs, unit)
}

function findTool(model: ModelPrice, unit: Unit): FoundRate {
  const nanos = model.tools.get(unit)
  return nanos === undefined ? { nanos: 0n, how: 'none' } : { nanos, how: 'listed' }
}

/** The part of it that is priced by the call. */
export function toolsOf(quantities: Quantities): Quantities {
  const units = Object.entries(quantities).filter(([unit]) => isTool(unit as Unit))
  return Object.fromEntries(units)
}
