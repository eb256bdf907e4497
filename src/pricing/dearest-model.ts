import { type Quantities, UNITS } from '../kernel/usage.ts'
import { plainAmountOf } from './exact-amount.ts'
import { type PartPrice, quantityOf, rateOf } from './part-price.ts'
import type { ModelPrice, PriceVersion } from './price-book.ts'
import type { Mode } from './price-file.ts'
import type { RatingContext } from './rating-context.ts'

const MODES_OF: ReadonlyMap<string, readonly Mode[]> = new Map([
  ['/v1/messages', ['chat']],
  ['/v1/chat/completions', ['chat']],
  ['/v1/completions', ['completion']],
  ['/v1/embeddings', ['embedding']],
  ['/v1/images/generations', ['image']],
  ['/v1/images/edits', ['image']],
  ['/v1/audio/speech', ['audio_speech']],
  ['/v1/audio/transcriptions', ['audio_transcription']],
])

/** Of Responses, and of what answers in its form. */
const RESPONSES_MODES: readonly Mode[] = ['chat', 'responses']

/** The models that an endpoint can be served by; all that draw, for what was drawn besides. */
export function candidates(
  { surface, endpoint }: RatingContext,
  isDrawn: boolean,
  { models }: PriceVersion,
): readonly ModelPrice[] {
  const modes = isDrawn ? (['image'] as const) : (MODES_OF.get(endpoint) ?? RESPONSES_MODES)
  const isClaude = surface === 'messages'
  return models.filter(
    ({ mode, provider, entry }) =>
      modes.includes(mode) && (provider === 'anthropic') === isClaude && entry.retired !== true,
  )
}

/** The model that so much costs most at, or null if there is none. */
export function dearestModel(
  models: readonly ModelPrice[],
  quantities: Quantities,
  priceOf: (model: ModelPrice) => PartPrice,
): ModelPrice | null {
  let dearest: ModelPrice | null = null
  let most = -1n
  for (const model of models) {
    const price = priceOf(model)
    let amount = 0n
    for (const unit of UNITS)
      amount += plainAmountOf(unit, BigInt(quantityOf(quantities, unit)), rateOf(price, unit).nanos)
    if (amount > most) {
      dearest = model
      most = amount
    }
  }
  return dearest
}
