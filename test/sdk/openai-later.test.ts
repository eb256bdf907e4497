import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import OpenAI, { toFile } from 'openai'
import OpenAI4 from 'openai-4'
import { dig, digList, digNumber, digText } from '../simulator/dig.ts'
import { type BothWays, collect, failureOf, startBothWays, type Way, weatherSchema } from './both-ways.ts'

/** Videos and runs of threads, whose cost comes later: the same with and without the gateway. */

let ways: BothWays
before(async () => {
  ways = await startBothWays()
})
after(() => ways.close())

const optionsOf = ({ chatUrl, chatKey }: Way) => ({ baseURL: chatUrl, apiKey: chatKey, maxRetries: 0 })
const clientOf = (way: Way) => new OpenAI(optionsOf(way))

const video = { model: 'sora-2-pro', prompt: 'A gate that opens', seconds: '8', size: '1280x720' } as const

test('a video is made, looked at, listed, downloaded and deleted the same way', async () => {
  const story = await ways.compare(async (way) => {
    const { videos } = clientOf(way)
    const created = await videos.create(video)
    const done = await videos.retrieve(created.id)
    return {
      created,
      done,
      listed: await collect(videos.list()),
      content: await (await videos.downloadContent(created.id)).text(),
      remix: await videos.remix(created.id, { prompt: 'Close it' }),
      edit: await videos.edit({ prompt: 'Paint it', video: { id: created.id } }),
      extension: await videos.extend({ prompt: 'Go on', seconds: '12', video: { id: created.id } }),
      deleted: await videos.delete(created.id),
      gone: await failureOf(() => videos.retrieve(created.id)),
    }
  })
  assert.deepEqual([story.created.status, story.done.status], ['queued', 'completed'])
  assert.deepEqual([story.remix.seconds, story.edit.seconds, story.extension.seconds], ['8', '8', '20'])
  assert.match(story.content, /ftypisom/)
  assert.equal(story.gone.class, 'NotFoundError')
})

test('a video with a picture to begin with, and one that is refused, are the same', async () => {
  const created = await ways.compare(async (way) => {
    const input_reference = await toFile(Buffer.from('picture'), 'first.png', { type: 'image/png' })
    return await clientOf(way).videos.create({ ...video, input_reference })
  })
  assert.equal(created.status, 'queued')
  const refused = await ways.compare((way) =>
    failureOf(() => clientOf(way).videos.create({ ...video, size: '1x1' as '1280x720' })),
  )
  assert.equal(refused.class, 'BadRequestError')
})

const parameters = weatherSchema
const weather = { type: 'function' as const, function: { name: 'get_weather', parameters } }
const assistant = { model: 'gpt-4o', instructions: 'Be brief.', tools: [weather] }
const asking = (content: string) => ({ messages: [{ role: 'user' as const, content }] })

/** Both majors have these methods, under the same names. */
for (const [major, connect] of [
  ['4', (way: Way) => new OpenAI4(optionsOf(way)) as unknown as OpenAI],
  ['7', clientOf],
] as const) {
  test(`openai ${major}: a run is created and polled the same way, and its answer is in the thread`, async () => {
    const story = await ways.compare(async (way) => {
      const { assistants, threads } = connect(way).beta
      const { id: assistant_id } = await assistants.create(assistant)
      const thread = await threads.create(asking('Tell me about tollgates.'))
      const run = await threads.runs.createAndPoll(thread.id, { assistant_id })
      const again = await threads.createAndRunPoll({ assistant_id, thread: asking('Hello') })
      return { thread, run, again, messages: await collect(threads.messages.list(thread.id)) }
    })
    assert.equal(story.run.status, 'completed')
    assert.ok((story.again.usage?.total_tokens ?? 0) > 0)
    assert.equal(story.messages.length, 2)
  })

  test(`openai ${major}: a run is streamed the same way, on a thread and with one`, async () => {
    const [events, others] = await ways.compare(async (way) => {
      const { assistants, threads } = connect(way).beta
      const { id: assistant_id } = await assistants.create(assistant)
      const thread = await threads.create(asking('Tell me about tollgates.'))
      return [
        await collect(threads.runs.stream(thread.id, { assistant_id })),
        await collect(threads.createAndRunStream({ assistant_id, thread: asking('Hello') })),
      ] as const
    })
    assert.equal(dig(events[0], 'event'), 'thread.run.created')
    assert.equal(dig(others[0], 'event'), 'thread.created')
    for (const seen of [events, others]) {
      const final = seen.find((event) => dig(event, 'event') === 'thread.run.completed')
      assert.ok(digNumber(final, 'data.usage.completion_tokens') > 0)
    }
  })

  test(`openai ${major}: a run that calls a tool goes on with its output, polled and streamed`, async () => {
    const story = await ways.compare(async (way) => {
      const { assistants, threads } = connect(way).beta
      const { id: assistant_id } = await assistants.create(assistant)
      const thread = asking('What is the weather in Paris?')
      const runs: unknown[] = []
      for (const streams of [false, true]) {
        const run = await threads.createAndRunPoll({ assistant_id, thread })
        const calls = run.required_action?.submit_tool_outputs.tool_calls ?? []
        const tool_outputs = calls.map(({ id }) => ({ tool_call_id: id, output: 'Rain' }))
        const outputs = { thread_id: run.thread_id, tool_outputs }
        runs.push(run)
        if (major === '4') {
          // In major 4 the ids of the path come first.
          type Submit = (thread: string, run: string, body: object) => PromiseLike<unknown>
          const submit = threads.runs.submitToolOutputsAndPoll.bind(threads.runs) as unknown as Submit
          runs.push(await submit(run.thread_id, run.id, { tool_outputs }))
        } else if (!streams) runs.push(await threads.runs.submitToolOutputsAndPoll(run.id, outputs))
        else runs.push(await collect(threads.runs.submitToolOutputsStream(run.id, outputs)))
      }
      return runs
    })
    const [waiting, done] = story
    assert.equal(digText(waiting, 'status'), 'requires_action')
    assert.equal(digList(waiting, 'required_action.submit_tool_outputs.tool_calls').length, 1)
    assert.equal(digText(done, 'status'), 'completed')
  })
}
