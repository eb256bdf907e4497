import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPricer } from '../../src/gateway/pricer.ts'
import { formatUsd } from '../../src/kernel/money.ts'
import { NO_USAGE } from '../../src/kernel/usage.ts'
import { NO_DISCOUNT } from '../../src/pricing/amounts.ts'
import { ambiguityFor } from '../../src/providers/ambiguity.ts'
import { videoOf } from '../../src/providers/chat/videos.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { modelAsked } from '../../src/providers/request-members.ts'
import { type Body, factsOf, form } from '../providers/request-facts-of.ts'
import { shippedBook } from './worked-example.ts'

const settings = { unpriced: 'auto', chatDefaultTier: null, chatRegional: false, polls: true } as const
const pricer = createPricer(shippedBook, { discount: NO_DISCOUNT, ...settings })

async function planOf(path: string, body: Body, source = null as ReturnType<typeof videoOf> | null) {
  const endpoint = findEndpoint('chat', 'POST', path)
  const facts = await factsOf(endpoint, body)
  const plan = pricer.plan({
    ...{ surface: 'chat', method: 'POST', path, endpoint, facts, modelAsked: modelAsked(facts) },
    ...{ madeFrom: { fileBound: null, video: source }, bodyBytes: 100, atMs: Date.now() },
  })
  const { hold, unpricedModel, makes } = plan
  const held =
    unpricedModel !== null
      ? `no price: ${unpricedModel}`
      : 'nanos' in hold
        ? formatUsd(hold.nanos)
        : hold.kind
  return { held, makes, refused: ambiguityFor(endpoint, facts)?.refuse ?? null }
}

const high = '1792x1024'
/** Holds in dollars, by request. Upstream refuses videos that it does not make; their holds must not be too low. */
const videos: readonly (readonly [asked: Record<string, string | number>, held: string])[] = [
  [{}, '0.4'],
  [{ seconds: '8' }, '0.8'],
  [{ seconds: 8 }, '0.8'],
  [{ seconds: '12', size: '1280x720' }, '1.2'],
  [{ model: 'sora-2-2025-12-08', seconds: '12' }, '1.2'],
  [{ model: 'sora-2-pro' }, '1.2'],
  [{ model: 'sora-2-pro', size: '720x1280' }, '1.2'],
  [{ model: 'sora-2-pro', size: high }, '2'],
  [{ model: 'sora-2-pro-2025-10-06', size: '1024x1792', seconds: '12' }, '6'],
  [{ model: 'sora-2-pro-high-res' }, '2'],
  // Sizes that are in no list.
  [{ model: 'sora-2-pro', size: '3840x2160' }, '2'],
  [{ model: 'sora-2-pro', size: 'auto' }, '2'],
  [{ model: 'sora-2-pro', size: '320x200' }, '1.2'],
  [{ model: 'sora-2', size: high }, '0.4'],
  // A length that cannot be read may be any length.
  [{ seconds: '' }, 'unbounded'],
  [{ seconds: 'eight' }, 'unbounded'],
  [{ seconds: '-8' }, 'unbounded'],
  [{ seconds: '0' }, 'unbounded'],
  [{ seconds: '8 ' }, 'unbounded'],
  [{ seconds: '8e9' }, 'unbounded'],
  [{ seconds: 3_600 }, '360'],
  [{ seconds: 2.5 }, '0.25'],
  [{ model: 'sora-9' }, 'no price: sora-9'],
  [{ model: 'gpt-6-luna' }, 'no price: gpt-6-luna'],
]

for (const [asked, held] of videos) {
  test(`a video of ${JSON.stringify(asked)} holds ${held}, asked for in JSON or in a form`, async () => {
    const prompt = { prompt: 'A gate' }
    const json = await planOf('/v1/videos', { ...prompt, ...asked })
    const fields = Object.fromEntries(Object.entries(asked).map(([name, value]) => [name, String(value)]))
    assert.deepEqual(json, { held, makes: 'video', refused: null })
    assert.deepEqual(await planOf('/v1/videos', form({ ...prompt, ...fields })), json)
  })
}

test('seconds, sizes and models that are there twice are refused to every key', async () => {
  for (const name of ['seconds', 'size', 'model']) {
    const body = `{"prompt":"x","${name}":"4","${name}":"8"}`
    assert.equal((await planOf('/v1/videos', body)).refused, 'always', name)
    const twice = form({ prompt: 'x', [name]: '4' })
    twice.append(name, '8')
    assert.equal((await planOf('/v1/videos', twice)).refused, 'always', name)
    const other = form({ prompt: 'x', [`${name}[]`]: '8' })
    assert.equal((await planOf('/v1/videos', other)).refused, 'always', name)
  }
  assert.equal((await planOf('/v1/videos', '{"prompt":"x","seconds":null,"size":[1]}')).held, '0.4')
  assert.equal(
    (await planOf('/v1/videos', '{"model":"sora-2-pro","seconds":{},"size":[1]}')).held,
    'unbounded',
  )
})

test('what is made from a video holds by its model, size and length, and an extension by what it adds', async () => {
  const usage = { ...NO_USAGE, modelServed: 'sora-2-pro', stopReason: 'completed' }
  const source = videoOf(usage, 12_000, high)
  const remix = '/v1/videos/video_1/remix'
  const held = async (path: string, body: Body, from: typeof source | null) =>
    (await planOf(path, body, from)).held
  assert.equal(await held(remix, {}, source), '6')
  assert.equal(await held('/v1/videos/edits', { video: { id: 'video_1' } }, source), '6')
  const extension = { video: { id: 'video_1' }, seconds: '20' }
  assert.equal(await held('/v1/videos/extensions', extension, source), '10')
  // A source that is not known counts as the dearest that there is, of any length.
  assert.equal(await held('/v1/videos/extensions', form({ seconds: '20' }), null), '10')
  assert.equal(await held('/v1/videos/extensions', {}, source), 'unbounded')
  assert.equal(await held(remix, {}, null), 'unbounded')
})

const runs: readonly (readonly [asked: Record<string, unknown>, held: string])[] = [
  // $2.50 and $10 a million.
  [{ model: 'gpt-4o', max_prompt_tokens: 1_000, max_completion_tokens: 1_000 }, '0.0125'],
  [{ model: 'gpt-4o', max_prompt_tokens: 1_000_000, max_completion_tokens: 500_000 }, '7.5'],
  [{ model: 'gpt-4o', tools: [], max_completion_tokens: 1_000 }, '0.33'],
  [{ model: 'gpt-4o', tools: [] }, '0.48384'],
  [{ model: 'gpt-4o' }, 'unbounded'],
  [{ model: 'gpt-4o', max_prompt_tokens: 1_000 }, 'unbounded'],
  [{ model: 'gpt-4o', max_completion_tokens: 1_000 }, 'unbounded'],
  [{ model: 'gpt-4o', max_prompt_tokens: '1000', max_completion_tokens: 1_000 }, 'unbounded'],
  [{ model: 'gpt-4o', max_prompt_tokens: 0, max_completion_tokens: 1_000 }, 'unbounded'],
  [{ model: 'gpt-4o', tools: [{ type: 'file_search' }] }, 'unbounded'],
  // Without `model` the run uses the assistant's own model, which the request does not tell.
  [{ max_prompt_tokens: 1_000, max_completion_tokens: 1_000 }, 'unbounded'],
  [{ model: 'gpt-9' }, 'no price: gpt-9'],
]

for (const [asked, held] of runs) {
  test(`a run of ${JSON.stringify(asked)} holds ${held}`, async () => {
    for (const path of ['/v1/threads/runs', '/v1/threads/thread_1/runs']) {
      const plan = await planOf(path, { assistant_id: 'asst_1', ...asked })
      assert.deepEqual(plan, { held, makes: 'run', refused: null })
    }
  })
}
