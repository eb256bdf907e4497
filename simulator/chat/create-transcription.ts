import { audioSeconds } from '../audio-formats.ts'
import type { Call } from '../call.ts'
import { asText, type JsonObject } from '../json.ts'
import { parseForm } from '../multipart.ts'
import { bytesReply, eventFrame, type Frame, jsonReply, type Reply, streamReply } from '../reply.ts'
import { composeAnswer, countTokens, seedFromText, splitIntoWords } from '../text.ts'
import { chatErrorFrame } from './chat-wire.ts'
import { invalid, missing, reported, requireModel } from './read-fields.ts'

const audioTokensPerSecond = 10
const textTokensPerSecond = 4
const textTokensMax = 2_000

/** POST /v1/audio/transcriptions */
export function createTranscription(call: Call): Reply {
  const { fields, file } = parseForm(call)
  if (file === undefined) throw missing('file')
  const model = requireModel(fields['model'], 'v1/audio/transcriptions', 'transcription')
  const { response_format: format = 'json', stream, prompt } = fields
  if (format !== 'json' && format !== 'text') throw invalid('response_format', 'json or text')
  const seconds = audioSeconds(file.content)
  const tokens = Math.min(textTokensMax, Math.max(4, Math.ceil(seconds * textTokensPerSecond)))
  const text = composeAnswer('', seedFromText(file.content), call.behaviours.tokens ?? tokens)
  const usage = reported(usageOf(model.id, seconds, asText(prompt), text), call.behaviours)
  // Upstream ignores `stream` for the oldest model.
  if (stream === 'true' && model.id !== 'whisper-1') {
    return streamReply(transcriptEvents(text, usage), chatErrorFrame, model.pace)
  }
  const timing = { pace: model.pace, tokens: countTokens(text) }
  if (format === 'json') return jsonReply({ text, ...usage }, timing)
  return bytesReply('text/plain; charset=utf-8', Buffer.from(`${text}\n`), timing)
}

function usageOf(model: string, seconds: number, prompt: string, text: string): JsonObject {
  if (model === 'whisper-1') return { type: 'duration', seconds: Math.ceil(seconds) }
  const [audio, read, written] = [
    Math.ceil(seconds * audioTokensPerSecond),
    countTokens(prompt),
    countTokens(text),
  ]
  return {
    type: 'tokens',
    input_tokens: audio + read,
    input_token_details: { audio_tokens: audio, text_tokens: read },
    output_tokens: written,
    total_tokens: audio + read + written,
  }
}

function* transcriptEvents(text: string, usage: JsonObject): Generator<Frame> {
  for (const delta of splitIntoWords(text)) {
    yield eventFrame(null, { type: 'transcript.text.delta', delta }, countTokens(delta), true)
  }
  yield eventFrame(null, { type: 'transcript.text.done', text, ...usage })
}
