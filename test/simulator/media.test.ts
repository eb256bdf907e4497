import assert from 'node:assert/strict'
import { audioSeconds } from '../../simulator/audio-formats.ts'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/text.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digList, digText } from './dig.ts'
import { parseEvents, post, postJson } from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator()
})
after(() => simulator.close())

test('embeddings are vectors of length 1 that depend on the text alone, in either encoding', async () => {
  const embed = async (more: object) =>
    (await postJson(simulator, '/v1/embeddings', { model: 'text-embedding-3-small', ...more })).json
  const json = await embed({ input: ['toll', 'gates', [1, 2, 3]], dimensions: 8 })
  const vectors = digList(json, 'data').map((each) => digList(each, 'embedding').map(Number))
  for (const vector of vectors) {
    assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-6 && vector.length === 8)
  }
  assert.notDeepEqual(vectors[0], vectors[1])
  assert.deepEqual(dig(json, 'usage'), { prompt_tokens: 1 + 2 + 3, total_tokens: 6 })
  const encoded = digText(
    await embed({ input: 'toll', dimensions: 8, encoding_format: 'base64' }),
    'data.0.embedding',
  )
  assert.equal(Buffer.from(encoded, 'base64').readFloatLE(0), vectors[0]?.[0])
  assert.equal(dig(await embed({ input: 'toll', dimensions: 0 }), 'error.param'), 'dimensions')
})

// 45 characters are three seconds of speech.
const speech = {
  ...{ model: 'gpt-4o-mini-tts', voice: 'alloy', input: 'Please have your coins ready at the tollgate.' },
}
const say = async (more: object) => {
  const response = await post(simulator, '/v1/audio/speech', { ...speech, ...more })
  return { response, bytes: Buffer.from(await response.arrayBuffer()) }
}

test('speech is sound of the length of its words, in each format that is spoken', async () => {
  for (const [response_format, contentType, head, seconds] of [
    ['mp3', 'audio/mpeg', 'fff3c4c4', 3.12],
    ['wav', 'audio/wav', '52494646', 3],
  ] as const) {
    const { response, bytes } = await say({ response_format })
    assert.equal(response.headers.get('content-type'), contentType)
    assert.equal(response.headers.get('content-length'), null)
    assert.equal(bytes.toString('hex', 0, 4), head)
    assert.equal(audioSeconds(bytes), seconds)
  }
  assert.equal((await say({ response_format: 'pcm' })).bytes.length, 3 * 48_000)
  assert.equal((await say({ response_format: 'flac' })).response.status, 400)
})

const sendForm = (path: string, fields: Record<string, string>, file?: Buffer) => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  if (file !== undefined) form.set('file', new Blob([new Uint8Array(file)]), 'a.wav')
  return fetch(`${simulator.chatUrl}${path}`, { method: 'POST', body: form })
}

test('a transcript counts audio and text tokens, whole and streamed; the oldest model counts seconds', async () => {
  const { bytes } = await say({ response_format: 'wav' })
  const hear = (more: Record<string, string>) =>
    sendForm('/audio/transcriptions', { model: 'gpt-4o-transcribe', prompt: 'toll', ...more }, bytes)
  const json: unknown = await (await hear({})).json()
  const text = digText(json, 'text')
  const output_tokens = countTokens(text)
  const input_token_details = { audio_tokens: 30, text_tokens: 1 }
  const total_tokens = 31 + output_tokens
  const usage = { type: 'tokens', input_tokens: 31, input_token_details, output_tokens, total_tokens }
  assert.deepEqual(dig(json, 'usage'), usage)
  const events = parseEvents(await (await hear({ stream: 'true' })).text())
  assert.equal(events.map(({ data }) => dig(data, 'delta') ?? '').join(''), text)
  assert.deepEqual(events.at(-1)?.data, { type: 'transcript.text.done', text, usage })
  assert.equal(await (await hear({ response_format: 'text' })).text(), `${text}\n`)
  const oldest: unknown = await (await hear({ model: 'whisper-1' })).json()
  assert.deepEqual(dig(oldest, 'usage'), { type: 'duration', seconds: 3 })
  const noFile = await sendForm('/audio/transcriptions', { model: 'whisper-1' })
  assert.equal(dig(await noFile.json(), 'error.param'), 'file')
})
