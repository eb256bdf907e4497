import { TEXT_MODES } from '../kernel/usage.ts'
import { assumptionsFor } from '../pricing/assumptions.ts'
import { instantMs } from '../pricing/compile-version.ts'
import type { PriceVersion } from '../pricing/price-book.ts'
import type { ModelEntry, OverlayEntry } from '../pricing/price-file.ts'

const WHOLE_BUDGET = 'Each call reserves the whole budget of its key, so calls wait for each other'

/** What happens if a model lacks a member, and no model has a similar name. */
const CONSEQUENCES = {
  context_window_tokens: WHOLE_BUDGET,
  max_output_tokens: WHOLE_BUDGET,
  cache_read: 'Cached tokens cost as much as others, and their calls are flagged unpriced',
} as const

/** What is valid, but probably not what the author of the overlay means. */
export function overlayWarnings(
  { effective_from: from, models = [] }: OverlayEntry,
  version: PriceVersion,
  shipped: PriceVersion,
  nowMs: number,
): readonly string[] {
  const isLater = from !== undefined && instantMs(from) > nowMs
  return [
    ...(isLater ? [`The prices begin only on ${from}. Until then, the former ones apply.`] : []),
    ...models.flatMap((given) => {
      const entry = version.entry.models.find(({ id }) => id === given.id)
      const isNew = !shipped.entry.models.some(({ id }) => id === given.id)
      const assumed = isNew ? assumptionsFor(given as ModelEntry, shipped.entry.models) : []
      return entry === undefined ? [] : gapsOf(entry, new Map(assumed.map((each) => [each.member, each])))
    }),
  ]
}

function gapsOf(
  entry: ModelEntry,
  assumed: ReadonlyMap<string, ReturnType<typeof assumptionsFor>[number]>,
): readonly string[] {
  const { id, mode = 'chat', rates, context_window_tokens, max_output_tokens } = entry
  if (!TEXT_MODES.some((each) => each === mode)) return []
  const own = { context_window_tokens, max_output_tokens, cache_read: rates.standard.cache_read }
  return (['context_window_tokens', 'max_output_tokens', 'cache_read'] as const).flatMap((member) => {
    const assumption = assumed.get(member)
    if (assumption !== undefined)
      return [`${id} has no ${member}. The gateway uses ${assumption.value}, from ${assumption.from}.`]
    return own[member] === undefined ? [`${id} has no ${member}. ${CONSEQUENCES[member]}.`] : []
  })
}
