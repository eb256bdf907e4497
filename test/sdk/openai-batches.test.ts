import assert from 'node:assert/strict'
import OpenAI, { toFile } from 'openai'
import { closeAfter, test } from '../support/suite.ts'
import { collect, startBothWays, type Way } from './both-ways.ts'

const ways = await startBothWays()
closeAfter(ways)

const clientOf = ({ chatUrl, chatKey }: Way) =>
  new OpenAI({ baseURL: chatUrl, apiKey: chatKey, maxRetries: 0 })

const line = (custom_id: string) =>
  JSON.stringify({
    ...{ custom_id, method: 'POST', url: '/v1/chat/completions' },
    body: { model: 'gpt-6-luna', messages: [{ role: 'user', content: `Tell me about ${custom_id}.` }] },
  })

test('a batch is uploaded, created, polled, listed and read alike', async () => {
  const seen = await ways.compare(async (way) => {
    const { files, batches } = clientOf(way)
    const content = Buffer.from(`${line('a')}\n${line('b')}\n`)
    const file = await files.create({ file: await toFile(content, 'batch.jsonl'), purpose: 'batch' })
    const made = await batches.create({
      ...{ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' },
    })
    const ended = await batches.retrieve(made.id)
    const listed = await collect(batches.list())
    const results = await (await files.content(ended.output_file_id ?? '')).text()
    return { made, ended, listed, results }
  })
  assert.equal(seen.ended.status, 'completed')
  assert.equal(seen.results.trim().split('\n').length, 2)
})

const background = { model: 'gpt-6-luna', input: 'Write a word', background: true, store: true } as const

test('a background response is polled, streamed and resumed alike', async () => {
  const seen = await ways.compare(async (way) => {
    const { responses } = clientOf(way)
    const { id } = await responses.create(background)
    const polled = await responses.retrieve(id)
    const events = await collect(await responses.create({ ...background, stream: true }))
    const streamed = (events[0] as { response: { id: string } }).response.id
    const resumed = await collect(await responses.retrieve(streamed, { stream: true, starting_after: 1 }))
    return { polled, events, resumed }
  })
  assert.equal(seen.polled.status, 'completed')
  assert.ok(seen.events.length > seen.resumed.length && seen.resumed.length > 0)
})
