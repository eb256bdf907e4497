import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type CallPlan, planRequest, rateFor } from '../../src/calls/call-plan.ts'
import type { Usage } from '../../src/kernel/usage.ts'
import { withCallFees } from '../../src/pricing/call-fees.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { RequestReader } from '../../src/providers/read-request.ts'
import { createMeter } from '../../src/providers/surfaces.ts'
import { anyCharacter } from '../support/any-character.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import {
  type Asked,
  chatReply,
  embeddingReply,
  IMAGE_LIMITS,
  imageReply,
  messageReply,
  modelsOf,
  responseReply,
  transcriptionReply,
  type Whim,
} from './documented-replies.ts'
import {
  CHAT_PIECES,
  COMPACT_PIECES,
  COMPLETION_PIECES,
  DECISION_PIECES,
  type Effect,
  EMBEDDING_PIECES,
  IMAGE_PIECES,
  MESSAGE_PIECES,
  type Piece,
  RESPONSE_PIECES,
} from './documented-requests.ts'
import { bookWith, discountOf, prices, usageOf } from './worked-example.ts'

const book = bookWith({ models: [{ id: 'gpt-image-2', ...IMAGE_LIMITS }] })

interface PaidEndpoint {
  readonly path: string
  readonly surface: 'messages' | 'chat'
  readonly models: readonly string[]
  readonly pieces: readonly fc.Arbitrary<Piece>[]
  body(text: string): Piece['body']
  reply(asked: Asked, whim: Whim, projectTier: string | null): object
}

const openai = (...modes: string[]) => modelsOf('openai', ...modes)
const said = (text: string) => ({ messages: [{ role: 'user', content: text }] })

const endpoints: readonly PaidEndpoint[] = [
  {
    path: '/v1/messages',
    surface: 'messages',
    models: modelsOf('anthropic', 'chat'),
    pieces: MESSAGE_PIECES,
    body: said,
    reply: messageReply,
  },
  {
    path: '/v1/chat/completions',
    surface: 'chat',
    // The few models that speak or search have their own rules, so they are listed four more times.
    models: [
      ...openai('chat'),
      ...Array<string[]>(4)
        .fill(openai('chat').filter((id) => /audio|-search-/.test(id)))
        .flat(),
    ],
    pieces: CHAT_PIECES,
    body: said,
    reply: chatReply,
  },
  {
    path: '/v1/completions',
    surface: 'chat',
    models: openai('completion'),
    pieces: COMPLETION_PIECES,
    body: (text) => ({ prompt: text }),
    reply: chatReply,
  },
  {
    path: '/v1/responses',
    surface: 'chat',
    models: openai('chat', 'responses'),
    pieces: RESPONSE_PIECES,
    body: (text) => ({ input: [{ role: 'user', content: text }] }),
    reply: responseReply,
  },
  {
    path: '/v1/responses/compact',
    surface: 'chat',
    models: openai('chat', 'responses'),
    pieces: COMPACT_PIECES,
    body: (text) => ({ input: [{ role: 'user', content: text }] }),
    reply: responseReply,
  },
  {
    path: '/v1/embeddings',
    surface: 'chat',
    models: ['text-embedding-3-small', 'text-embedding-3-large', 'text-embedding-ada-002'],
    pieces: EMBEDDING_PIECES,
    body: (text) => ({ input: text }),
    reply: embeddingReply,
  },
  {
    path: '/v1/decisions',
    surface: 'chat',
    models: ['gpt-6-luna', 'gpt-6-sol'],
    pieces: DECISION_PIECES,
    body: (text) => ({ input: [{ role: 'user', content: text }] }),
    reply: responseReply,
  },
  {
    path: '/v1/images/generations',
    surface: 'chat',
    models: ['gpt-image-2'],
    pieces: IMAGE_PIECES,
    body: (text) => ({ prompt: text }),
    reply: (asked, whim) => imageReply(asked, whim, false),
  },
]

/** A body of all its pieces: lists are concatenated; of other members the last counts. */
function join(parts: readonly Piece['body'][]): Piece['body'] {
  const body: Record<string, unknown> = {}
  for (const part of parts)
    for (const [name, value] of Object.entries(part)) {
      const before = body[name]
      body[name] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value
    }
  return body
}

const SEARCHING: Effect = { searches: 1, elsewhere: true }

function effectOf(path: string, model: string, pieces: readonly Piece[]): Effect {
  const own = path === '/v1/chat/completions' && model.includes('-search-') ? SEARCHING : {}
  return Object.assign({}, ...pieces.map(({ effect }) => effect), own) as Effect
}

const textBytes = fc.oneof(
  { arbitrary: fc.nat({ max: 4_000 }), weight: 30 },
  { arbitrary: fc.integer({ min: 40_000, max: 300_000 }), weight: 4 },
  { arbitrary: fc.integer({ min: 900_000, max: 1_200_000 }), weight: 1 },
)

const whims: fc.Arbitrary<Whim> = fc.record({
  share: fc.oneof({ arbitrary: fc.constant(1), weight: 3 }, fc.double({ min: 0, max: 1, noNaN: true })),
  inputKind: fc.nat({ max: 3 }),
  outputIsAudio: fc.boolean(),
  downgraded: fc.boolean(),
  abroad: fc.boolean(),
})

const settings = fc.record({
  projectTier: fc.constantFrom<(string | null)[]>(null, 'flex', 'priority'),
  regional: fc.boolean(),
  keep: fc.constantFrom<bigint[]>(1_000_000_000n, 800_000_000n),
})
type Settings = typeof settings extends fc.Arbitrary<infer S> ? S : never

interface Body {
  readonly bytes: Buffer
  readonly contentType: string
}

async function planFor(
  path: string,
  surface: 'messages' | 'chat',
  { bytes, contentType }: Body,
  { keep, projectTier, regional }: Settings,
) {
  const endpoint = findEndpoint(surface, 'POST', path)
  assert.ok(endpoint?.billing === 'metered')
  const reader = new RequestReader(endpoint, { contentType, contentEncoding: undefined })
  for (let at = 0; at < bytes.length; at += 65_536) await reader.write(bytes.subarray(at, at + 65_536))
  const facts = await reader.end()
  const given = prices(
    { discount: discountOf(keep), chatDefaultTier: projectTier, chatRegional: regional },
    book,
  )
  const asked = { facts, bodyBytes: bytes.length, atMs: Date.now() }
  const plan = planRequest({ surface, method: 'POST', path, endpoint, ...asked }, given)
  return { plan, boundClass: plan.boundClass, reader: endpoint.usage }
}

function feesAdded(plan: CallPlan, usage: Usage): Usage {
  return withCallFees(usage, plan, plan.context, plan.version)
}

function usageIn(reader: Parameters<typeof createMeter>[0], reply: object): Usage {
  const meter = createMeter(reader, 'application/json')
  meter.write(Buffer.from(JSON.stringify(reply)))
  return meter.end(true).usage
}

for (const { path, surface, models, pieces, body, reply } of endpoints) {
  test(`no documented reply to ${path} costs more than its hold`, async () => {
    let bounded = 0
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...models),
        textBytes,
        fc.tuple(...pieces),
        whims,
        settings,
        async (model, size, chosen, whim, given) => {
          const parts = [body('x'.repeat(size)), ...chosen.map((piece) => piece.body)]
          const whole = join([{ model }, ...parts])
          const bytes = Buffer.from(JSON.stringify(whole))
          const effect = { ...effectOf(path, model, chosen), predicted: 0 }
          const { plan, reader, boundClass } = await planFor(
            path,
            surface,
            { bytes, contentType: 'application/json' },
            given,
          )
          if (boundClass === 'unknown' || plan.hold.kind !== 'bound') return
          // The bound for several passes is approximate: a higher cost is an overrun and raises later holds.
          const { advisors, compactsAbove, fallbacks, uses = 0 } = effect
          if (advisors !== undefined || compactsAbove !== undefined) return
          if (fallbacks !== undefined && uses > 0) return
          bounded++
          const asked: Asked = {
            model,
            effect,
            bodyBytes: bytes.length,
            hasTools: boundClass === 'exotic',
          }
          const usage = usageIn(reader, reply(asked, whim, given.projectTier))
          const { listNanos, costNanos } = rateFor(plan, feesAdded(plan, usage))
          assert.ok(listNanos <= plan.hold.listNanos, `${listNanos} > ${plan.hold.listNanos}`)
          assert.ok(costNanos <= plan.hold.nanos, `${costNanos} > ${plan.hold.nanos}`)
        },
      ),
      { numRuns: runs(600) },
    )
    assert.ok(bounded > 30, `only ${bounded} requests could be bounded`)
  })
}

test('no image edit costs more than its hold', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 10 }),
      fc.nat({ max: 3_000 }),
      whims,
      settings,
      async (n, fileBytes, whim, given) => {
        const form = new FormData()
        form.set('model', 'gpt-image-2')
        form.set('n', String(n))
        form.set('image', new Blob([Buffer.alloc(fileBytes)]))
        const { plan, reader, bytes } = await planForm('/v1/images/edits', form, given)
        const asked: Asked = {
          model: 'gpt-image-2',
          effect: { answers: n },
          bodyBytes: bytes.length,
          hasTools: false,
        }
        const { listNanos } = rateFor(plan, usageIn(reader, imageReply(asked, whim, true)))
        assert.ok(plan.hold.kind === 'bound' && listNanos <= plan.hold.listNanos)
      },
    ),
    { numRuns: runs(200) },
  )
})

test('no transcription costs more than its hold', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('whisper-1', 'gpt-4o-transcribe', 'gpt-4o-mini-transcribe'),
      fc.nat({ max: 400_000 }),
      whims,
      settings,
      async (model, fileBytes, whim, given) => {
        const form = new FormData()
        form.set('model', model)
        form.set('file', new Blob([Buffer.alloc(fileBytes)]), 'a.ogg')
        const { plan, reader } = await planForm('/v1/audio/transcriptions', form, given)
        const asked: Asked = { model, effect: {}, bodyBytes: fileBytes, hasTools: false }
        const { listNanos } = rateFor(plan, usageIn(reader, transcriptionReply(asked, whim)))
        assert.ok(plan.hold.kind === 'bound' && listNanos <= plan.hold.listNanos)
      },
    ),
    { numRuns: runs(200) },
  )
})

test('speech billed per character holds exactly its cost', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('tts-1', 'tts-1-hd'),
      fc.string({ maxLength: 4_096, unit: anyCharacter }),
      settings,
      async (model, input, given) => {
        const bytes = Buffer.from(JSON.stringify({ model, input, voice: 'alloy' }))
        const body = { bytes, contentType: 'application/json' }
        const { plan } = await planFor('/v1/audio/speech', 'chat', body, given)
        const quantities = { input_characters: [...input].length }
        const { listNanos } = rateFor(plan, usageOf([{ model: null, quantities, promptTokens: 0 }]))
        const most = given.projectTier === 'priority' ? 2n * listNanos : listNanos
        assert.equal(plan.hold.kind === 'bound' && plan.hold.listNanos, most)
      },
    ),
    { numRuns: runs(200) },
  )
  const body = {
    bytes: Buffer.from('{"model":"gpt-4o-mini-tts","input":"x"}'),
    contentType: 'application/json',
  }
  const given = { projectTier: null, regional: false, keep: 1_000_000_000n }
  const { plan } = await planFor('/v1/audio/speech', 'chat', body, given)
  assert.equal(plan.hold.kind, 'unbounded')
})

async function planForm(path: string, form: FormData, given: Settings) {
  const sent = new Response(form)
  const contentType = sent.headers.get('content-type') ?? ''
  const bytes = Buffer.from(await sent.arrayBuffer())
  return { ...(await planFor(path, 'chat', { bytes, contentType }, given)), bytes }
}
