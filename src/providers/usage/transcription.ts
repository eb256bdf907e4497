import { NameSet } from '../../metering/json-document.ts'
import type { OutputText } from '../../metering/output-text.ts'
import { type ClosingKind, type ClosingUsage, ClosingUsageReader } from './closing-usage.ts'
import { type Counts, quantitiesOf } from './counts.ts'
import { partOf, readTokens } from './openai-tokens.ts'
import { isObject, type WireObject } from './wire-value.ts'

const TRANSCRIPTION: ClosingKind = {
  layout: {
    members: new NameSet(['type', 'text', 'delta', 'usage', 'duration', 'error', 'code']),
    ignored: new NameSet([]),
    noise: new Set(),
    dullEvents: [],
  },
  closingEvents: new Set(['transcript.text.done']),
  textEvent: 'transcript.text.delta',
  textMember: 'text',
  durationMember: 'duration',
  closesEachResult: false,
  readUsage(usage, _object, counts) {
    return usage['type'] === 'duration' ? readDuration(usage, counts) : readAudioTokens(usage, counts)
  },
}

/** Models that are paid by the length of the recording. */
function readDuration(usage: WireObject, counts: Counts): ClosingUsage {
  const milliseconds = counts.readSeconds(usage['seconds'])
  return {
    parts: [
      {
        model: null,
        quantities: quantitiesOf({ audio_input_milliseconds: milliseconds }),
        promptTokens: 0,
      },
    ],
    inputKnown: milliseconds !== null,
    outputKnown: true,
    outputTokens: 0,
  }
}

/** Input without details is the recording. */
function readAudioTokens(usage: WireObject, counts: Counts): ClosingUsage {
  const tokens = readTokens(usage, counts)
  const { input } = tokens
  const heard =
    input === null || isObject(usage['input_token_details'])
      ? input
      : { total: input.total, quantities: quantitiesOf({ audio_input_tokens: input.total }) }
  return {
    parts: [partOf(null, { ...tokens, input: heard })],
    inputKnown: tokens.input !== null,
    outputKnown: tokens.output !== null,
    outputTokens: tokens.output?.total ?? 0,
  }
}

/** POST /v1/audio/transcriptions. Replies as plain text or subtitles say nothing about usage. */
export function transcriptionReader(output: OutputText): ClosingUsageReader {
  return new ClosingUsageReader(TRANSCRIPTION, output)
}
