import type { Quantities, Unit, UsagePart } from '../../kernel/usage.ts'

const OUTPUT_UNITS: ReadonlySet<string> = new Set<Unit>([
  'output_tokens',
  'audio_output_tokens',
  'image_output_tokens',
])

/**
 * The parts without the units of a side that is not known, so that what is counted in their place is not added to
 * half of it. Then the first part is that of the response's own model, for what is counted to be added to.
 */
export function keepKnownSides(
  parts: readonly UsagePart[],
  inputKnown: boolean,
  outputKnown: boolean,
): readonly UsagePart[] {
  if (inputKnown && outputKnown) return parts
  const kept = parts.map((part) => ({
    model: part.model,
    quantities: keepUnits(part.quantities, inputKnown, outputKnown),
    promptTokens: inputKnown ? part.promptTokens : 0,
  }))
  const own = kept.find((part) => part.model === null) ?? { model: null, quantities: {}, promptTokens: 0 }
  return [own, ...kept.filter((part) => part !== own)]
}

function keepUnits(quantities: Quantities, inputKnown: boolean, outputKnown: boolean): Quantities {
  const isKnown = (unit: string): boolean => (OUTPUT_UNITS.has(unit) ? outputKnown : inputKnown)
  return Object.fromEntries(Object.entries(quantities).filter(([unit]) => isKnown(unit)))
}

/** Adds calls of tools, which are known whenever they were seen, to the part of the response's own model. */
export function addToolCalls(parts: readonly UsagePart[], calls: Quantities): readonly UsagePart[] {
  if (Object.keys(calls).length === 0) return parts
  const at = parts.findLastIndex((part) => part.model === null)
  if (at < 0) return [...parts, { model: null, quantities: calls, promptTokens: 0 }]
  return parts.map((part, i) => (i === at ? { ...part, quantities: { ...part.quantities, ...calls } } : part))
}
