import assert from 'node:assert/strict'
import { inflateSync } from 'node:zlib'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/tokens.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digList, digNumber, digText } from './dig.ts'
import { type JsonAnswer, postEvents, postJson } from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator()
})
after(() => simulator.close())

const prompt = 'A tollgate in the rain'
const draw = (more: object = {}): Promise<JsonAnswer> =>
  postJson(simulator, '/v1/images/generations', { prompt, ...more })

test('an image is a picture that can be opened, in each format that is drawn', async () => {
  const heads = { png: '89504e47', jpeg: 'ffd8ffe0', webp: '52494646' }
  for (const [format, head] of Object.entries(heads)) {
    const { status, json } = await draw({ output_format: format })
    assert.equal(status, 200)
    assert.equal(dig(json, 'output_format'), format)
    const picture = Buffer.from(digText(json, 'data.0.b64_json'), 'base64')
    assert.equal(picture.toString('hex', 0, 4), head)
    // All rows of the picture are there: 16 of them, of 16 pixels and a byte for the filter.
    if (format === 'png') assert.equal(inflateSync(picture.subarray(41, -16)).length, 16 * 49)
  }
})

test('usage follows from size, quality and number, and the model may be left out', async () => {
  for (const [more, tokens] of [
    [{}, 1_056],
    [{ quality: 'low' }, 272],
    [{ quality: 'high', size: '1024x1536' }, 6_240],
    [{ quality: 'low', size: '1536x1024', n: 3 }, 1_200],
    [{ quality: 'low', size: '2048x2048', model: 'gpt-image-2.5-flare' }, 1_088],
  ] as const) {
    const { json } = await draw(more)
    const text = countTokens(prompt)
    assert.deepEqual(dig(json, 'usage'), {
      input_tokens: text,
      input_tokens_details: { text_tokens: text, image_tokens: 0 },
      output_tokens: tokens,
      output_tokens_details: { text_tokens: 0, image_tokens: tokens },
      total_tokens: text + tokens,
    })
    assert.equal(digList(json, 'data').length, 'n' in more ? more.n : 1)
  }
})

test('a stream shows partial images, which cost 100 tokens each, and ends each image with usage', async () => {
  const body = { prompt, stream: true, partial_images: 2, n: 2, quality: 'low' }
  const events = await postEvents(simulator, '/v1/images/generations', body)
  const image = [
    'image_generation.partial_image',
    'image_generation.partial_image',
    'image_generation.completed',
  ]
  assert.deepEqual(
    events.map(({ event }) => event),
    [...image, ...image],
  )
  assert.equal(dig(events[1]?.data, 'partial_image_index'), 1)
  assert.equal(dig(events[2]?.data, 'usage.output_tokens'), 272 + 200)
  assert.equal(dig(events[2]?.data, 'usage.input_tokens'), countTokens(prompt))
  assert.equal(dig(events[5]?.data, 'usage.input_tokens'), 0)
})

test('an edit takes its images as a form or as JSON, and counts them as input', async () => {
  const form = new FormData()
  form.set('prompt', prompt)
  form.set('model', 'gpt-image-1.5')
  form.set('quality', 'low')
  form.append('image[]', new Blob(['one'], { type: 'image/png' }), 'one.png')
  form.append('image[]', new Blob(['two'], { type: 'image/png' }), 'two.png')
  const sent = await fetch(`${simulator.chatUrl}/images/edits`, { method: 'POST', body: form })
  const edited: unknown = await sent.json()
  assert.equal(dig(edited, 'usage.input_tokens_details.image_tokens'), 646)
  assert.equal(dig(edited, 'usage.output_tokens'), 272)
  const images = [{ image_url: 'data:image/png;base64,AAAA' }]
  const events = await postEvents(simulator, '/v1/images/edits', { prompt, images, stream: true })
  assert.equal(events.at(-1)?.event, 'image_edit.completed')
  assert.equal(digNumber(events.at(-1)?.data, 'usage.input_tokens_details.image_tokens'), 323)
  assert.equal((await postJson(simulator, '/v1/images/edits', { prompt })).status, 400)
})

test('what is not drawn is refused with the member that asked for it', async () => {
  for (const [more, param] of [
    [{ output_format: 'svg' }, 'output_format'],
    [{ quality: 'max' }, 'quality'],
    [{ size: '9000x9000' }, 'size'],
    [{ partial_images: 4 }, 'partial_images'],
    [{ n: 11 }, 'n'],
    [{ prompt: '' }, 'prompt'],
    [{ model: 'gpt-4o' }, 'model'],
  ] as const) {
    const { json } = await draw(more)
    assert.equal(dig(json, 'error.param'), param)
  }
})
