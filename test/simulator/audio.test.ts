import assert from 'node:assert/strict'
import { audioSeconds } from '../../simulator/audio-length.ts'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/tokens.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digList, digText } from './dig.ts'
import { parseEvents, post, postEvents, postJson } from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator()
})
after(() => simulator.close())

// 45 characters are three seconds of speech.
const input = 'Please have your coins ready at the tollgate.'
const say = async (more: object = {}) => {
  const body = { model: 'gpt-4o-mini-tts', voice: 'alloy', input, ...more }
  const response = await post(simulator, '/v1/audio/speech', body)
  return { response, bytes: Buffer.from(await response.arrayBuffer()) }
}

test('speech is sound of the length of its words, in each format that is spoken', async () => {
  for (const [format, contentType, head, seconds] of [
    ['mp3', 'audio/mpeg', 'fff3c4c4', 3.12],
    ['wav', 'audio/wav', '52494646', 3],
    ['opus', 'audio/opus', '4f676753', 3],
    ['pcm', 'audio/pcm', '00008a00', undefined],
  ] as const) {
    const { response, bytes } = await say({ response_format: format })
    assert.equal(response.headers.get('content-type'), contentType)
    assert.equal(response.headers.get('content-length'), null)
    assert.equal(bytes.toString('hex', 0, 4), head)
    if (seconds === undefined) assert.equal(bytes.length, 3 * 48_000)
    else assert.equal(audioSeconds(bytes), seconds)
  }
  const fast = await say({ response_format: 'wav', speed: 2 })
  assert.equal(audioSeconds(fast.bytes), 1.5)
})

test('speech as events carries the same sound and ends with usage', async () => {
  const body = {
    model: 'gpt-4o-mini-tts',
    voice: 'alloy',
    input,
    response_format: 'wav',
    stream_format: 'sse',
  }
  const events = await postEvents(simulator, '/v1/audio/speech', body)
  const sound = events.slice(0, -1).map(({ data }) => Buffer.from(digText(data, 'audio'), 'base64'))
  assert.deepEqual(Buffer.concat(sound), (await say({ response_format: 'wav' })).bytes)
  assert.deepEqual(events.at(-1)?.data, {
    type: 'speech.audio.done',
    usage: { input_tokens: countTokens(input), output_tokens: 60, total_tokens: countTokens(input) + 60 },
  })
  const old = await postJson(simulator, '/v1/audio/speech', { ...body, model: 'tts-1' })
  assert.equal(dig(old.json, 'error.param'), 'stream_format')
})

test('a format that is not spoken is refused by naming those that are', async () => {
  const { bytes } = await say({ response_format: 'flac' })
  assert.match(digText(JSON.parse(String(bytes)), 'error.message'), /simulator speaks in mp3, opus, wav, pcm/)
})

const hear = async (fields: Record<string, string>, path = 'transcriptions') => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  const { bytes } = await say({ response_format: 'wav' })
  form.set('file', new Blob([new Uint8Array(bytes)], { type: 'audio/wav' }), 'speech.wav')
  return await fetch(`${simulator.chatUrl}/audio/${path}`, { method: 'POST', body: form })
}

test('a transcript counts audio and text tokens, whole and streamed', async () => {
  const model = 'gpt-4o-transcribe'
  const json: unknown = await (await hear({ model, prompt: 'toll' })).json()
  const text = digText(json, 'text')
  const output = countTokens(text)
  const usage = {
    type: 'tokens',
    input_tokens: 31,
    input_token_details: { audio_tokens: 30, text_tokens: 1 },
    output_tokens: output,
    total_tokens: 31 + output,
  }
  assert.deepEqual(dig(json, 'usage'), usage)
  const events = parseEvents(await (await hear({ model, prompt: 'toll', stream: 'true' })).text())
  const deltas = events.slice(0, -1).map(({ data }) => dig(data, 'delta'))
  assert.equal(deltas.join(''), text)
  assert.deepEqual(events.at(-1)?.data, { type: 'transcript.text.done', text, usage })
  assert.equal(await (await hear({ model, response_format: 'text' })).text(), `${text}\n`)
})

test('the oldest model is paid by the second, and writes subtitles', async () => {
  const model = 'whisper-1'
  const plain: unknown = await (await hear({ model, stream: 'true' })).json()
  assert.deepEqual(dig(plain, 'usage'), { type: 'duration', seconds: 3 })
  const verbose: unknown = await (await hear({ model, response_format: 'verbose_json' })).json()
  assert.equal(dig(verbose, 'duration'), 3)
  assert.equal(dig(digList(verbose, 'segments').at(-1), 'end'), 3)
  const words = { model, response_format: 'verbose_json', 'timestamp_granularities[]': 'word' }
  const spoken = digList(await (await hear(words)).json(), 'words')
  assert.equal(spoken.map((word) => dig(word, 'word')).join(' '), dig(plain, 'text'))
  const srt = await (await hear({ model, response_format: 'srt' })).text()
  assert.match(srt, /^1\n00:00:00,000 --> 00:00:0\d,\d{3}\n/)
  const vtt = await (await hear({ model, response_format: 'vtt' })).text()
  assert.match(vtt, /^WEBVTT\n\n00:00:00\.000 --> [\s\S]* --> 00:00:03\.000\n/)
})

test('a translation is English and says nothing of usage', async () => {
  const json: unknown = await (await hear({ model: 'whisper-1' }, 'translations')).json()
  assert.deepEqual(Object.keys(Object(json)), ['text'])
  const fields = { model: 'whisper-1', response_format: 'verbose_json', language: 'de' }
  const verbose: unknown = await (await hear(fields, 'translations')).json()
  assert.equal(dig(verbose, 'language'), 'english')
  assert.equal((await hear({ model: 'gpt-4o-transcribe' }, 'translations')).status, 400)
})

test('a transcription without a file, or in a form it cannot have, is refused', async () => {
  const refused = await hear({ model: 'gpt-4o-transcribe', response_format: 'srt' })
  assert.equal(dig(await refused.json(), 'error.code'), 'unsupported_value')
  const form = new FormData()
  form.set('model', 'whisper-1')
  const noFile = await fetch(`${simulator.chatUrl}/audio/transcriptions`, { method: 'POST', body: form })
  assert.equal(dig(await noFile.json(), 'error.param'), 'file')
})

test('a sound that claims to last for ever is believed for a day', () => {
  const page = Buffer.alloc(28, 0xff)
  page.write('OggS')
  assert.equal(audioSeconds(page), 86_400)
  assert.equal(audioSeconds(Buffer.alloc(16_000, 1)), 1)
})
