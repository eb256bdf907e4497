import { NameSet } from '../../metering/json-document.ts'
import type { OutputText } from '../../metering/output-text.ts'
import { type ClosingKind, ClosingUsageReader } from './closing-usage.ts'
import { partOf } from './openai-tokens.ts'
import { readImageTokens, svgParts } from './response-tools.ts'

const IMAGES: ClosingKind = {
  layout: {
    members: new NameSet(['type', 'usage', 'svg_usage', 'error', 'code']),
    ignored: new NameSet([]),
    noise: new Set(),
    dullEvents: ['image_generation.partial_image', 'image_edit.partial_image'].map((type) =>
      Buffer.from(`{"type":"${type}"`),
    ),
  },
  closingEvents: new Set(['image_generation.completed', 'image_edit.completed']),
  textEvent: null,
  textMember: null,
  closesEachResult: true,
  readUsage(usage, object, counts) {
    const tokens = readImageTokens(usage, counts)
    return {
      parts: [partOf(null, tokens), ...svgParts(object['svg_usage'], counts)],
      inputKnown: tokens.input !== null,
      outputKnown: tokens.output !== null,
      outputTokens: tokens.output?.total ?? 0,
    }
  },
}

/** POST /v1/images/generations and /v1/images/edits. The reply does not name the model. */
export function imagesReader(output: OutputText): ClosingUsageReader {
  return new ClosingUsageReader(IMAGES, output)
}
