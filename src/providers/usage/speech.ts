import { NameSet } from '../../metering/json-document.ts'
import type { OutputText } from '../../metering/output-text.ts'
import { type ClosingKind, ClosingUsageReader } from './closing-usage.ts'
import { quantitiesOf } from './counts.ts'
import { partOf, readTokens } from './openai-tokens.ts'

const SPEECH: ClosingKind = {
  layout: {
    members: new NameSet(['type', 'usage', 'error', 'code']),
    ignored: new NameSet([]),
    noise: new Set(),
    dullEvents: [Buffer.from('{"type":"speech.audio.delta"')],
  },
  closingEvents: new Set(['speech.audio.done']),
  textEvent: null,
  textMember: null,
  closesEachResult: false,
  readUsage(usage, _object, counts) {
    const { input, output } = readTokens(usage, counts)
    const total = output?.total ?? 0
    const spoken =
      output === null ? null : { total, quantities: quantitiesOf({ audio_output_tokens: total }) }
    return {
      parts: [partOf(null, { input, output: spoken })],
      inputKnown: input !== null,
      outputKnown: output !== null,
      outputTokens: total,
    }
  },
}

/** POST /v1/audio/speech: text in, speech out. Only its stream of events says how much; plain audio says nothing. */
export function speechReader(output: OutputText): ClosingUsageReader {
  return new ClosingUsageReader(SPEECH, output)
}
