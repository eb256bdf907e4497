import { type AudioFormat, audioFormats } from '../audio-formats.ts'
import type { Call } from '../call.ts'
import { asText } from '../json.ts'
import { eventFrame, type Frame, type Reply, streamReply } from '../reply.ts'
import { countTokens } from '../text.ts'
import { chatErrorFrame } from './chat-wire.ts'
import { invalid, missing, parseChatBody, reported, requireModel } from './read-fields.ts'

const charactersPerSecond = 15
const tokensPerSecond = 20

/** POST /v1/audio/speech: bytes as they are made or, with `stream_format: "sse"`, as events that end with usage. */
export function createSpeech(call: Call): Reply {
  const body = parseChatBody(call)
  const model = requireModel(body['model'], 'v1/audio/speech', 'speech')
  const input = asText(body['input'])
  if (input === '') throw missing('input')
  if (body['voice'] === undefined) throw missing('voice')
  const format = audioFormats.get(asText(body['response_format'] ?? 'mp3'))
  if (format === undefined) throw invalid('response_format', [...audioFormats.keys()].join(', '))
  const seconds = Math.max(1, input.length / charactersPerSecond)
  const sound = soundFrames(format, seconds)
  if (body['stream_format'] !== 'sse')
    return streamReply(sound, chatErrorFrame, model.pace, format.contentType)
  const output = Math.ceil(seconds * tokensPerSecond)
  const inputTokens = countTokens(input) + countTokens(asText(body['instructions']))
  const usage = { input_tokens: inputTokens, output_tokens: output, total_tokens: inputTokens + output }
  const done = { type: 'speech.audio.done', ...reported(usage, call.behaviours) }
  return streamReply(soundEvents(sound, done), chatErrorFrame, model.pace)
}

function* soundFrames(format: AudioFormat, seconds: number): Generator<Frame> {
  const head = format.head(seconds)
  if (head.length > 0) yield { bytes: head, tokens: 0, isDelta: false }
  const tokens = format.pieceSeconds * tokensPerSecond
  const pieces = Math.ceil(seconds / format.pieceSeconds)
  for (let index = 0; index < pieces; index += 1) yield { bytes: format.piece, tokens, isDelta: true }
}

function* soundEvents(sound: Iterable<Frame>, done: object): Generator<Frame> {
  for (const { bytes, tokens } of sound) {
    yield eventFrame(null, { type: 'speech.audio.delta', audio: bytes.toString('base64') }, tokens, true)
  }
  yield eventFrame(null, done)
}
