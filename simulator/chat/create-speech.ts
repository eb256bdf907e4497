import { type AudioFormat, audioFormats } from '../audio-formats.ts'
import type { Call } from '../call.ts'
import { asText, isObject, mergeJson } from '../json.ts'
import { Refusal } from '../refusal.ts'
import { eventsReply, type Reply } from '../reply.ts'
import { dataFrame, type Frame } from '../sse.ts'
import { countTokens } from '../tokens.ts'
import { invalid, missing, parseChatBody, requireModel } from './chat-body.ts'
import { chatErrorFrame } from './chat-error.ts'
import { chatHeaders } from './chat-headers.ts'

const inputCharactersMax = 4_096
const charactersPerSecond = 15
const tokensPerSecond = 20

/** POST /v1/audio/speech: bytes as they are made or, with `stream_format: "sse"`, as events that end with usage. */
export function createSpeech(call: Call): Reply {
  const body: { [name: string]: unknown } = parseChatBody(call)
  const { input, voice, speed = 1 } = body
  const model = requireModel(body['model'], 'v1/audio/speech', ['speech'])
  if (typeof input !== 'string' || input === '') throw missing('input')
  if (input.length > inputCharactersMax) {
    throw new Refusal(400, `Invalid 'input': string too long, at most ${inputCharactersMax} characters.`, {
      param: 'input',
      code: 'string_above_max_length',
    })
  }
  if (asText(voice) === '' && !isObject(voice)) throw missing('voice')
  if (typeof speed !== 'number' || !(speed >= 0.25 && speed <= 4)) throw invalid('speed', '0.25 to 4')
  const format = requireFormat(body['response_format'] ?? 'mp3')
  const isEvents = body['stream_format'] === 'sse'
  if (isEvents && model.id.startsWith('tts-1')) {
    throw new Refusal(400, `stream_format 'sse' is not supported with ${model.id}.`, {
      param: 'stream_format',
    })
  }
  const seconds = Math.max(1, input.length / charactersPerSecond) / speed
  const headers = chatHeaders(call.identity, countTokens(input))
  if (!isEvents) {
    const sound = soundFrames(format, seconds)
    return eventsReply(sound, chatErrorFrame, model.pace, headers, format.contentType)
  }
  const output = Math.ceil(seconds * tokensPerSecond)
  const inputTokens = countTokens(input) + countTokens(asText(body['instructions']))
  const usage = { input_tokens: inputTokens, output_tokens: output, total_tokens: inputTokens + output }
  const done = {
    type: 'speech.audio.done',
    ...(call.behaviours.noUsage === true ? {} : { usage: mergeJson(usage, call.behaviours.usage ?? {}) }),
  }
  return eventsReply(soundEvents(format, seconds, done), chatErrorFrame, model.pace, headers)
}

function requireFormat(name: unknown): AudioFormat {
  const format = audioFormats.get(asText(name))
  if (format !== undefined) return format
  const played = [...audioFormats.keys()].join(', ')
  throw new Refusal(400, `The simulator speaks in ${played}, not in ${JSON.stringify(name)}.`, {
    param: 'response_format',
    code: 'invalid_value',
  })
}

function* soundFrames(format: AudioFormat, seconds: number): Generator<Frame> {
  const head = format.head(seconds)
  if (head.length > 0) yield { text: head, tokens: 0, isDelta: false }
  const pieces = Math.ceil(seconds / format.pieceSeconds)
  const tokens = format.pieceSeconds * tokensPerSecond
  for (let index = 0; index < pieces; index += 1) {
    yield { text: format.piece(index, index === pieces - 1), tokens, isDelta: true }
  }
}

function* soundEvents(format: AudioFormat, seconds: number, done: object): Generator<Frame> {
  for (const { text, tokens } of soundFrames(format, seconds)) {
    const audio = (typeof text === 'string' ? Buffer.from(text) : text).toString('base64')
    yield dataFrame({ type: 'speech.audio.delta', audio }, tokens, true)
  }
  yield dataFrame(done)
}
