import assert from 'node:assert/strict'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { toFile } from 'openai'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/tokens.ts'
import { after, before, test } from '../support/suite.ts'

let simulator: Simulator
let openai: OpenAI
let anthropic: Anthropic
before(async () => {
  simulator = await startSimulator({ messagesKey: 'sk-ant-right', chatKey: 'sk-right' })
  openai = new OpenAI({ baseURL: simulator.chatUrl, apiKey: 'sk-right', maxRetries: 0 })
  anthropic = new Anthropic({ baseURL: simulator.messagesUrl, apiKey: 'sk-ant-right', maxRetries: 0 })
})
after(() => simulator.close())

test('OpenAI’s SDK draws, whole and streamed, and edits', async () => {
  const drawn = await openai.images.generate({ model: 'gpt-image-2', prompt: 'A gate', quality: 'low' })
  assert.equal(drawn.usage?.output_tokens, 272)
  assert.ok(drawn.data?.[0]?.b64_json?.startsWith('iVBOR'))
  const types: string[] = []
  const stream = await openai.images.generate({ prompt: 'A gate', stream: true, partial_images: 1 })
  for await (const event of stream) types.push(event.type)
  assert.deepEqual(types, ['image_generation.partial_image', 'image_generation.completed'])
  const image = await toFile(Buffer.from(drawn.data?.[0]?.b64_json ?? '', 'base64'), 'gate.png')
  const edited = await openai.images.edit({ model: 'gpt-image-2', image, prompt: 'Open it' })
  assert.equal(edited.usage?.input_tokens_details.image_tokens, 323)
})

test('OpenAI’s SDK speaks and listens', async () => {
  const speech = { model: 'gpt-4o-mini-tts', voice: 'alloy', input: 'Please stop at the gate.' } as const
  const spoken = await openai.audio.speech.create({ ...speech, response_format: 'wav' })
  const file = await toFile(Buffer.from(await spoken.arrayBuffer()), 'speech.wav')
  const heard = await openai.audio.transcriptions.create({ model: 'gpt-4o-transcribe', file })
  assert.equal(heard.usage?.type, 'tokens')
  const timed = { model: 'whisper-1', file, response_format: 'verbose_json' } as const
  const verbose = await openai.audio.transcriptions.create(timed)
  assert.equal(verbose.duration, 1.75)
  assert.equal(verbose.usage?.seconds, 2)
  let text = ''
  const stream = await openai.audio.transcriptions.create({ model: 'gpt-4o-transcribe', file, stream: true })
  for await (const event of stream) if (event.type === 'transcript.text.delta') text += event.delta
  assert.equal(text, heard.text)
  const translated = await openai.audio.translations.create({ model: 'whisper-1', file })
  assert.equal(translated.text, heard.text)
})

test('OpenAI’s SDK runs a batch from a file and reads its answers', async () => {
  const body = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello' }] }
  const request = { custom_id: 'one', method: 'POST', url: '/v1/chat/completions', body }
  const upload = await toFile(Buffer.from(`${JSON.stringify(request)}\n`), 'in.jsonl')
  const input = await openai.files.create({ file: upload, purpose: 'batch' })
  const created = await openai.batches.create({
    input_file_id: input.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  })
  assert.equal(created.status, 'validating')
  const batch = await openai.batches.retrieve(created.id)
  assert.equal(batch.status, 'completed')
  const content = await (await openai.files.content(batch.output_file_id ?? '')).text()
  const answer = JSON.parse(content) as { custom_id: string; response: { body: { usage: object } } }
  assert.equal(answer.custom_id, 'one')
  assert.ok(batch.usage !== undefined && batch.usage.output_tokens > 0)
  const listed: string[] = []
  for await (const found of openai.batches.list()) listed.push(found.id)
  assert.deepEqual(listed, [created.id])
})

test('OpenAI’s SDK polls a background response, resumes its stream, lists its input and cancels', async () => {
  const request = { model: 'gpt-6.1-sol', input: 'Hello', background: true } as const
  const created = await openai.responses.create(request)
  assert.equal(created.status, 'queued')
  const done = await openai.responses.retrieve(created.id)
  assert.equal(done.status, 'completed')
  assert.equal(done.usage?.output_tokens, 32 + countTokens(done.output_text))
  const stream = await openai.responses.create({ ...request, stream: true })
  let id = ''
  let last = -1
  for await (const event of stream) {
    if (event.type === 'response.created') id = event.response.id
    last = event.sequence_number
    if (event.type === 'response.output_text.delta') break
  }
  const resumed = await openai.responses.retrieve(id, { stream: true, starting_after: last })
  const types: string[] = []
  for await (const event of resumed) {
    last += 1
    assert.equal(event.sequence_number, last)
    types.push(event.type)
  }
  assert.equal(types.at(-1), 'response.completed')
  const items: string[] = []
  for await (const item of openai.responses.inputItems.list(id)) items.push(item.type)
  assert.deepEqual(items, ['message'])
  assert.equal((await openai.responses.cancel(id)).status, 'completed')
})

test('Anthropic’s SDK runs a batch, reads its results and deletes it', async () => {
  const params = { model: 'claude-haiku-5-5', max_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] }
  const requests = [{ custom_id: 'one', params: params as Anthropic.MessageCreateParamsNonStreaming }]
  const created = await anthropic.messages.batches.create({ requests })
  assert.equal(created.processing_status, 'in_progress')
  const batch = await anthropic.messages.batches.retrieve(created.id)
  assert.equal(batch.processing_status, 'ended')
  for await (const line of await anthropic.messages.batches.results(batch.id)) {
    assert.equal(line.custom_id, 'one')
    assert.ok(line.result.type === 'succeeded')
    assert.equal(line.result.message.usage.service_tier, 'batch')
  }
  const listed: string[] = []
  for await (const found of anthropic.messages.batches.list()) listed.push(found.id)
  assert.deepEqual(listed, [batch.id])
  assert.equal((await anthropic.messages.batches.delete(batch.id)).type, 'message_batch_deleted')
})

test('Anthropic’s SDK sees a search of upstream’s own as its blocks and its count', async () => {
  const stream = anthropic.messages.stream(
    {
      model: 'claude-sonnet-5-5',
      max_tokens: 500,
      messages: [{ role: 'user', content: 'Search the web for tollgates' }],
      tools: [{ type: 'web_search_20260318', name: 'web_search' }],
    },
    { headers: {} },
  )
  const message = await stream.finalMessage()
  assert.deepEqual(
    message.content.map((block) => block.type),
    ['server_tool_use', 'web_search_tool_result', 'text'],
  )
  assert.equal(message.usage.server_tool_use?.web_search_requests, 1)
})
