import { audioSeconds } from '../audio-length.ts'
import type { Call } from '../call.ts'
import { seedFromText } from '../chance.ts'
import { composeAnswer } from '../compose-text.ts'
import { asText, type JsonObject, mergeJson } from '../json.ts'
import type { Model } from '../models.ts'
import { Refusal } from '../refusal.ts'
import { bytesReply, eventsReply, jsonReply, type Reply } from '../reply.ts'
import { dataFrame, type Frame } from '../sse.ts'
import { countTokens, splitIntoDeltas } from '../tokens.ts'
import { missing, requireModel } from './chat-body.ts'
import { chatErrorFrame } from './chat-error.ts'
import { chatHeaders } from './chat-headers.ts'
import { parseForm } from './form-body.ts'
import { cutIntoSegments, segmentJson, toSrt, toVtt, wordsOf } from './transcript-segments.ts'

const audioTokensPerSecond = 10
const textTokensPerSecond = 4
const textTokensMax = 2_000
const plainFormats: readonly string[] = ['json', 'text']
const timedFormats: readonly string[] = ['srt', 'vtt', 'verbose_json']

interface Listening {
  readonly model: Model
  readonly fields: JsonObject
  readonly format: string
  readonly seconds: number
  readonly text: string
}

/** POST /v1/audio/transcriptions */
export function createTranscription(call: Call): Reply {
  const heard = listen(call, 'v1/audio/transcriptions')
  const { model, text, fields } = heard
  const usage = usageOf(call, heard)
  // Upstream ignores `stream` for the oldest model.
  if (fields['stream'] === 'true' && model.id !== 'whisper-1') {
    const headers = chatHeaders(call.identity, countTokens(text))
    return eventsReply(transcriptEvents(text, usage), chatErrorFrame, model.pace, headers)
  }
  return writeDown(call, heard, 'transcribe', usage)
}

/** POST /v1/audio/translations, whose answers never report usage. */
export function createTranslation(call: Call): Reply {
  const heard = listen(call, 'v1/audio/translations')
  if (heard.model.id !== 'whisper-1') {
    throw new Refusal(400, `${heard.model.id} does not translate.`, { param: 'model' })
  }
  return writeDown(call, heard, 'translate', {})
}

function listen(call: Call, endpoint: string): Listening {
  const { fields, files } = parseForm(call)
  const file = files.find((part) => part.name === 'file')
  if (file === undefined) throw missing('file')
  const model = requireModel(fields['model'], endpoint, ['transcription'])
  const format = asText(fields['response_format'] ?? 'json')
  const formats = model.id === 'whisper-1' ? [...plainFormats, ...timedFormats] : plainFormats
  if (!formats.includes(format)) {
    throw new Refusal(400, `${model.id} of the simulator writes ${formats.join(', ')}, not '${format}'.`, {
      param: 'response_format',
      code: 'unsupported_value',
    })
  }
  const seconds = audioSeconds(file.content)
  const tokens = Math.min(textTokensMax, Math.max(4, Math.ceil(seconds * textTokensPerSecond)))
  const text = composeAnswer('', seedFromText(file.content), call.behaviours.tokens ?? tokens)
  return { model, fields, format, seconds, text }
}

function usageOf(call: Call, { model, seconds, text, fields }: Listening): JsonObject {
  if (call.behaviours.noUsage === true) return {}
  const audio = Math.ceil(seconds * audioTokensPerSecond)
  const prompt = countTokens(asText(fields['prompt']))
  const output = countTokens(text)
  const usage: JsonObject =
    model.id === 'whisper-1'
      ? { type: 'duration', seconds: Math.ceil(seconds) }
      : {
          type: 'tokens',
          input_tokens: audio + prompt,
          input_token_details: { audio_tokens: audio, text_tokens: prompt },
          output_tokens: output,
          total_tokens: audio + prompt + output,
        }
  return { usage: mergeJson(usage, call.behaviours.usage ?? {}) }
}

function* transcriptEvents(text: string, usage: JsonObject): Generator<Frame> {
  for (const delta of splitIntoDeltas(text)) {
    yield dataFrame({ type: 'transcript.text.delta', delta }, countTokens(delta), true)
  }
  yield dataFrame({ type: 'transcript.text.done', text, ...usage })
}

function writeDown(call: Call, heard: Listening, task: string, usage: JsonObject): Reply {
  const { text, format, seconds, fields } = heard
  const headers = chatHeaders(call.identity, countTokens(text))
  const timing = { pace: heard.model.pace, tokens: countTokens(text) }
  const segments = cutIntoSegments(text, seconds)
  const write = (words: string): Reply =>
    bytesReply('text/plain; charset=utf-8', Buffer.from(words), headers, timing)
  if (format === 'text') return write(`${text}\n`)
  if (format === 'srt') return write(toSrt(segments))
  if (format === 'vtt') return write(toVtt(segments))
  if (format === 'json') return jsonReply(200, { text, ...usage }, { headers, ...timing })
  // A field given as a list arrives once under a name with brackets.
  const isByWord = fields['timestamp_granularities[]'] === 'word'
  const detail = isByWord ? { words: wordsOf(segments) } : { segments: segments.map(segmentJson) }
  const language = task === 'translate' ? 'english' : (fields['language'] ?? 'english')
  const verbose = { task, language, duration: seconds, text, ...detail, ...usage }
  return jsonReply(200, verbose, { headers, ...timing })
}
