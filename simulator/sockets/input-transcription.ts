import { requireModel } from '../chat/chat-body.ts'
import { asText, type JsonObject, mergeJson } from '../json.ts'
import { countTokens, splitIntoDeltas } from '../tokens.ts'
import type { SessionEvents } from './session-events.ts'
import type { Heard } from './spoken-audio.ts'
import { deltaEvent, plainEvent, writeTurn } from './write-turn.ts'

const modelDefault = 'gpt-4o-transcribe'

/** Transcribes speech, beside any response that is being written. The faults that are meant for responses do not apply. */
export async function transcribe(
  events: SessionEvents,
  itemId: string,
  heard: Heard,
  config: JsonObject,
): Promise<void> {
  const model = requireModel(config['model'] ?? modelDefault, 'v1/realtime', [
    'transcription',
    'live-transcription',
  ])
  const { chunks, usage, noUsage } = events.socket.handshake.behaviours
  const isTimed = model.kind === 'live-transcription' || model.id === 'whisper-1'
  const counted = isTimed
    ? { type: 'duration', seconds: heard.seconds }
    : usageOf(heard, asText(config['prompt']))
  const place = { item_id: itemId, content_index: 0 }
  const name = 'conversation.item.input_audio_transcription'
  const { transcript } = heard
  const written = splitIntoDeltas(transcript).map((delta) =>
    deltaEvent(`${name}.delta`, { ...place, delta }, countTokens(delta)),
  )
  const stated = noUsage === true ? {} : { usage: mergeJson(counted, usage ?? {}) }
  const completed = plainEvent(`${name}.completed`, { ...place, transcript, ...stated })
  await writeTurn(events.socket, {
    events: [...written, completed],
    behaviours: chunks === undefined ? {} : { chunks },
    pace: model.pace,
    interrupt: events.socket.signal,
    errorEvent: {},
    stamp: events.stamp,
  })
}

function usageOf({ audioTokens, transcript }: Heard, prompt: string): JsonObject {
  const text = countTokens(prompt)
  const output = countTokens(transcript)
  return {
    type: 'tokens',
    total_tokens: audioTokens + text + output,
    input_tokens: audioTokens + text,
    input_token_details: { text_tokens: text, audio_tokens: audioTokens },
    output_tokens: output,
  }
}
