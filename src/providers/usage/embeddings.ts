import { NameSet } from '../../metering/json-document.ts'
import type { OutputText } from '../../metering/output-text.ts'
import { type ClosingKind, ClosingUsageReader } from './closing-usage.ts'
import { partOf, readTokens } from './openai-tokens.ts'

const EMBEDDINGS: ClosingKind = {
  layout: {
    // The vectors are megabytes of numbers and are not looked at.
    members: new NameSet(['model', 'usage', 'error']),
    ignored: new NameSet([]),
    noise: new Set(),
    dullEvents: [],
  },
  closingEvents: new Set(),
  textEvent: null,
  textMember: null,
  closesEachResult: false,
  readUsage(usage, _body, counts) {
    const { input } = readTokens(usage, counts)
    return {
      parts: [partOf(null, { input, output: null })],
      inputKnown: input !== null,
      outputKnown: true,
      outputTokens: 0,
    }
  },
}

/** POST /v1/embeddings: input only. */
export function embeddingsReader(output: OutputText): ClosingUsageReader {
  return new ClosingUsageReader(EMBEDDINGS, output)
}
