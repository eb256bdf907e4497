import assert from 'node:assert/strict'
import { audioSeconds } from '../../simulator/audio-formats.ts'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/text.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digList, digText } from './dig.ts'
import { parseEvents, post, postEvents, postJson, send } from './wire-client.ts'

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

const draw = { prompt: 'A tollgate', quality: 'low' }

test('the tokens of images follow from size, quality and number', async () => {
  for (const [more, tokens] of [
    [{}, 272],
    [{ quality: 'high' }, 4_160],
    [{ size: '512x1024', n: 2 }, 272],
  ] as const) {
    const { json } = await postJson(simulator, '/v1/images/generations', { ...draw, ...more })
    assert.ok(digText(json, 'data.0.b64_json').startsWith('iVBOR'))
    assert.equal(dig(json, 'usage.output_tokens_details.image_tokens'), tokens)
    assert.equal(dig(json, 'usage.input_tokens'), countTokens(draw.prompt))
  }
  const none = await postJson(simulator, '/v1/images/generations', {})
  assert.equal(dig(none.json, 'error.param'), 'prompt')
})

test('a stream shows partial images, which cost 100 tokens each, and ends each image with usage', async () => {
  const body = { ...draw, stream: true, partial_images: 1, n: 2 }
  const events = await postEvents(simulator, '/v1/images/generations', body)
  const [partial, whole] = ['image_generation.partial_image', 'image_generation.completed']
  assert.deepEqual(
    events.map(({ event }) => event),
    [partial, whole, partial, whole],
  )
  assert.equal(dig(events[1]?.data, 'usage.output_tokens'), 372)
  assert.equal(dig(events[3]?.data, 'usage.input_tokens'), 0)
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

test('speech as events carries the same sound and ends with usage', async () => {
  const wav = { ...speech, response_format: 'wav' }
  const events = await postEvents(simulator, '/v1/audio/speech', { ...wav, stream_format: 'sse' })
  const sound = events.slice(0, -1).map(({ data }) => Buffer.from(digText(data, 'audio'), 'base64'))
  assert.deepEqual(Buffer.concat(sound), (await say(wav)).bytes)
  const read = countTokens(speech.input)
  assert.deepEqual(events.at(-1)?.data, {
    type: 'speech.audio.done',
    usage: { input_tokens: read, output_tokens: 60, total_tokens: read + 60 },
  })
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

test('a file is uploaded to the byte, listed, fetched, downloaded and deleted', async () => {
  const content = Buffer.from([0, 13, 10, 45, 45, 255])
  const ids: unknown[] = []
  for (const _ of [1, 2]) {
    const uploaded = await sendForm('/files', { purpose: 'batch' }, content)
    ids.unshift(dig(await uploaded.json(), 'id'))
  }
  const list = await send(simulator, 'GET', '/v1/files?limit=1')
  assert.deepEqual([dig(list.json, 'data.0.id'), dig(list.json, 'has_more')], [ids[0], true])
  const rest = await send(simulator, 'GET', `/v1/files?after=${ids[0]}`)
  assert.deepEqual([dig(rest.json, 'data.0.id'), dig(rest.json, 'has_more')], [ids[1], false])
  const path = `/v1/files/${ids[0]}`
  assert.equal(dig((await send(simulator, 'GET', path)).json, 'bytes'), 6)
  const download = await fetch(`${simulator.messagesUrl}${path}/content`)
  assert.deepEqual(Buffer.from(await download.arrayBuffer()), content)
  assert.equal(dig((await send(simulator, 'DELETE', path)).json, 'deleted'), true)
  assert.equal((await send(simulator, 'GET', path)).status, 404)
  assert.equal((await sendForm('/files', {}, content)).status, 400)
  const headers = { 'content-type': 'multipart/form-data; boundary=xyz' }
  const broken = await post(simulator, '/v1/files', '--xyz\r\nname="file"', { headers })
  assert.match(await broken.text(), /a part does not end/)
})
