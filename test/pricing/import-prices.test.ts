import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Difference, type Import, importPrices } from '../../src/pricing/import-prices.ts'
import { loadListPrices } from '../../src/pricing/load-book.ts'
import { findModel, type PriceVersion } from '../../src/pricing/price-book.ts'
import { decimalOf } from '../../src/pricing/read-catalogs.ts'
import { shipped } from './worked-example.ts'

type Imported = Extract<Import, { kind: 'import' }>

function importing(
  catalog: unknown,
  current: PriceVersion = shipped,
  only: readonly string[] = [],
): Imported {
  const nowMs = Date.parse('2026-11-15T00:00:00Z')
  const result = importPrices(JSON.stringify(catalog), { shipped, current, nowMs, only })
  if (result.kind === 'refused') throw new Error(result.problems.join('\n'))
  return result
}

/** The prices that come of laying the overlay on the shipped ones. */
function overlaid({ overlay }: Imported): PriceVersion {
  const loaded = loadListPrices(overlay)
  if (loaded.kind === 'refused') throw new Error(loaded.problems.join('\n'))
  return loaded.book.versions[0]
}

function shown(differences: readonly Difference[]): readonly string[] {
  return differences.map(({ model, member, from, to }) => `${model} ${member}: ${from} → ${to}`)
}

const numbers: readonly [given: unknown, factor: number, decimal: string | null][] = [
  [2.5e-6, 1_000_000, '2.5'],
  [1e-7, 1_000_000, '0.1'],
  [3.0000000000000004e-7, 1_000_000, '0.3'],
  [2.5e-9, 1_000_000, '0.0025'],
  [0.0001, 3_600, '0.36'],
  [0.075, 1, '0.075'],
  [5, 1, '5'],
  [0, 1, '0'],
  [1e21, 1, null],
  [-1, 1, null],
  [Number.NaN, 1, null],
  ['5', 1, null],
]
for (const [given, factor, decimal] of numbers) {
  test(`the number ${String(given)} times ${factor} is ${decimal === null ? 'no price' : decimal}`, () => {
    assert.equal(decimalOf(given, factor), decimal)
  })
}

/** Prices in the shape of LiteLLM's model_prices_and_context_window.json. */
const litellm = {
  sample_spec: { input_cost_per_token: 0, litellm_provider: 'one of the providers', mode: 'chat' },
  'gpt-4o': {
    input_cost_per_token: 3e-6,
    output_cost_per_token: 1e-5,
    cache_read_input_token_cost: 1.25e-6,
    input_cost_per_token_batches: 1.5e-6,
    output_cost_per_token_batches: 5e-6,
    input_cost_per_token_priority: 4.25e-6,
    litellm_provider: 'openai',
    max_input_tokens: 64_000,
    mode: 'chat',
    supports_vision: true,
  },
  'gpt-4o-2024-08-06': {
    input_cost_per_token: 9e-6,
    output_cost_per_token: 9e-6,
    litellm_provider: 'openai',
  },
  'gpt-5.4': {
    input_cost_per_token: 2.5e-6,
    input_cost_per_token_above_272k_tokens: 6e-6,
    output_cost_per_token: 1.5e-5,
    output_cost_per_token_above_272k_tokens: 2.25e-5,
    litellm_provider: 'openai',
  },
  'claude-new': {
    cache_creation_input_token_cost: 1.25e-6,
    cache_creation_input_token_cost_above_1hr: 2e-6,
    cache_read_input_token_cost: 1e-7,
    input_cost_per_token: 1e-6,
    output_cost_per_token: 5e-6,
    litellm_provider: 'anthropic',
    max_input_tokens: 200_000,
    max_output_tokens: 64_000,
    mode: 'chat',
    provider_specific_entry: { us: 1.1, fast: 6 },
    search_context_cost_per_query: { search_context_size_medium: 0.01 },
  },
  'whisper-1': {
    input_cost_per_second: 0.0001,
    output_cost_per_second: 0.0001,
    litellm_provider: 'openai',
    mode: 'audio_transcription',
  },
  'tts-1': { input_cost_per_character: 1.5e-5, litellm_provider: 'openai', mode: 'audio_speech' },
  'openai/gpt-twice': { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6, litellm_provider: 'openai' },
  'gemini/some': { input_cost_per_token: 1e-6, litellm_provider: 'gemini' },
}

test('a LiteLLM file: what differs is shown, and becomes an overlay', () => {
  const result = importing(litellm)
  assert.equal(result.source, 'litellm')
  assert.deepEqual(shown(result.differences.filter(({ model }) => model !== 'claude-new')), [
    'gpt-4o rates.standard.input: 2.5 → 3',
    'gpt-4o rates.batch.input: 1.25 → 1.5',
    'gpt-5.4 rates.standard.long_context.input: 5 → 6',
  ])
  const prices = overlaid(result)
  assert.equal(
    findModel(prices, 'gpt-4o-2024-08-06')?.rates.standard.short.get('input_tokens'),
    3_000_000_000n,
  )
  assert.equal(findModel(prices, 'gpt-4o')?.contextWindowTokens, 128_000, 'limits of the book are kept')
})

test('a LiteLLM file: a new model comes with its limits, writes and multiplier', () => {
  const entry = findModel(overlaid(importing(litellm)), 'claude-new')?.entry
  assert.deepEqual(JSON.parse(JSON.stringify(entry)), {
    id: 'claude-new',
    provider: 'anthropic',
    rates: {
      standard: {
        cache_write_5m: '1.25',
        cache_write_1h: '2',
        cache_read: '0.1',
        input: '1',
        output: '5',
      },
    },
    mode: 'chat',
    context_window_tokens: 200_000,
    max_output_tokens: 64_000,
    geography: { us: '1.1' },
  })
})

test('a LiteLLM file: prices by the second and by the character are those of the book', () => {
  const { differences } = importing({ 'whisper-1': litellm['whisper-1'], 'tts-1': litellm['tts-1'] })
  assert.deepEqual(differences, [])
})

test('what has no counterpart is noted', () => {
  const { notes } = importing(litellm)
  assert.ok(notes.some((note) => note.includes('search_context_cost_per_query')))
  assert.ok(notes.some((note) => note === '"output_cost_per_second" has no counterpart here (1 models)'))
})

test('only the models that were named are imported', () => {
  const { differences } = importing(litellm, shipped, ['gpt-5.4'])
  assert.deepEqual([...new Set(differences.map(({ model }) => model))], ['gpt-5.4'])
})

test('a LiteLLM file: a side that is stated for short prompts alone is not free for long ones', () => {
  const gpt = { litellm_provider: 'openai', mode: 'chat', cache_read_input_token_cost: 1e-7 }
  const rates = { input_cost_per_token: 1e-6, output_cost_per_token: 5e-6 }
  const result = importing({
    'gpt-tiered': { ...gpt, ...rates, input_cost_per_token_above_200k_tokens: 2e-6 },
  })
  const added = findModel(overlaid(result), 'gpt-tiered')
  assert.deepEqual(added?.entry.rates.standard.long_context, { input: '2', output: '5' })
})

/** Prices in the shape of the data files of genai-prices. */
const genai = [
  {
    id: 'openai',
    name: 'OpenAI',
    api_pattern: 'https://api.openai.com',
    models: [
      {
        id: 'gpt-6-luna',
        match: { or: [{ equals: 'gpt-6-luna' }, { regex: '^gpt-6-luna-' }] },
        context_window: 1_050_000,
        prices: {
          input_mtok: { base: 0.1, tiers: [{ start: 271_999, price: 0.2 }] },
          cache_write_mtok: { base: 0.125, tiers: [{ start: 271_999, price: 0.25 }] },
          cache_read_mtok: { base: 0.02, tiers: [{ start: 271_999, price: 0.02 }] },
          output_mtok: { base: 0.5, tiers: [{ start: 271_999, price: 0.75 }] },
          web_searches_kcount: 10,
          storage_searches_kcount: 2.5,
        },
      },
      {
        id: 'gpt-5.6-sol',
        match: { equals: 'gpt-5.6-sol' },
        prices: [
          { prices: { input_mtok: 5, output_mtok: 30 } },
          {
            constraint: { type: 'start_date', start_date: '2026-08-21' },
            prices: { input_mtok: 4, output_mtok: 20 },
          },
          {
            constraint: { type: 'start_date', start_date: '2027-01-01' },
            prices: { input_mtok: 1, output_mtok: 2 },
          },
        ],
      },
      {
        id: 'whisper-1',
        match: { equals: 'whisper-1' },
        prices: { input_audio_hours: 0.36, audio_hours: 0.36 },
      },
      {
        id: 'gpt-new',
        match: {
          or: [
            { equals: 'gpt-new' },
            { equals: 'gpt-new-2026' },
            { equals: 'gpt-5' },
            { starts_with: 'gpt-new' },
          ],
        },
        context_window: 10_000,
        prices: { input_mtok: 1, output_mtok: 2, web_searches_kcount: 25 },
      },
      { id: 'half', match: { equals: 'half' }, prices: { input_mtok: 1 } },
    ],
  },
  { id: 'google', models: [{ id: 'gemini', match: { equals: 'gemini' }, prices: { input_mtok: 1 } }] },
]

test('a genai-prices file: prices in force, tiers and searches', () => {
  const result = importing(genai)
  assert.equal(result.source, 'genai-prices')
  assert.deepEqual(shown(result.differences.filter(({ model }) => model !== 'gpt-new')), [
    'gpt-6-luna rates.long_context_above: 272000 → 271999',
    'gpt-6-luna rates.standard.cache_read: 0.01 → 0.02',
  ])
  assert.equal(findModel(overlaid(result), 'gpt-6-luna')?.rates.longContextAbove, 271_999)
})

test('a genai-prices file: a rate without tiers is that of long prompts too', () => {
  const input_mtok = { base: 1, tiers: [{ start: 200_000, price: 2 }] }
  const prices = { input_mtok, cache_read_mtok: 0.1, output_mtok: 5 }
  const models = [{ id: 'gpt-tiered', match: { equals: 'gpt-tiered' }, prices }]
  const added = findModel(overlaid(importing([{ id: 'openai', models }])), 'gpt-tiered')
  assert.deepEqual(added?.entry.rates.standard.long_context, { input: '2', cache_read: '0.1', output: '5' })
})

test('a genai-prices file: a new model gets its exact names and its own price for searches', () => {
  const prices = overlaid(importing(genai))
  const added = findModel(prices, 'gpt-new-2026')
  assert.deepEqual([added?.id, added?.entry.aliases], ['gpt-new', ['gpt-new-2026']])
  assert.equal(added?.tools.get('web_searches'), 25_000_000_000n)
  assert.equal(findModel(prices, 'gpt-5')?.id, 'gpt-5', 'a name of the book stays where it was')
})

test('a genai-prices file: what was left out is noted', () => {
  const notes = importing(genai).notes.join('\n')
  assert.match(notes, /gpt-5\.6-sol: other prices from 2027-01-01 on are left out/)
  assert.match(notes, /half: no rates that can be used/)
  assert.match(notes, /whisper-1: "audio_hours" has no counterpart/)
})

test('tiers that the file does not state are kept, and that is said', () => {
  const { notes } = importing([
    { id: 'openai', models: [{ id: 'gpt-5.6-sol', match: {}, prices: { input_mtok: 3 } }] },
  ])
  assert.ok(
    notes.includes('gpt-5.6-sol: batch, flex, priority not in the file, kept as they were'),
    notes.join('\n'),
  )
})

test('a tier of which the file has only some rates is not added', () => {
  const result = importing({
    'gpt-5-nano': {
      input_cost_per_token: 5e-8,
      input_cost_per_token_priority: 2.5e-6,
      litellm_provider: 'openai',
    },
  })
  assert.deepEqual(result.differences, [])
  assert.match(result.notes.join('\n'), /gpt-5-nano: priority left out/)
})

test('what the overlay in use changed is carried over, and is no difference', () => {
  const loaded = loadListPrices(
    '{"default_models":{"/v1/images/edits":"gpt-image-1.5","/v1/responses":null},"tools":{"openai":{"web_search_per_1000":"9"}},"models":[{"id":"o3","max_output_tokens":5},{"id":"mine","provider":"local","rates":{"standard":{"input":"1","output":"1"}}}]}',
  )
  assert.equal(loaded.kind, 'book')
  const result = importing(litellm, loaded.book.versions[0], ['gpt-4o'])
  assert.deepEqual([...new Set(result.differences.map(({ model }) => model))], ['gpt-4o'])
  const prices = overlaid(result)
  assert.equal(findModel(prices, 'mine')?.provider, 'local')
  assert.equal(findModel(prices, 'o3')?.maxOutputTokens, 5)
  assert.equal(findModel(prices, 'o3')?.tools.get('web_searches'), 9_000_000_000n)
  const { defaultModels } = prices
  assert.equal(defaultModels.get('/v1/images/edits'), 'gpt-image-1.5')
  assert.equal(defaultModels.get('/v1/images/generations'), 'gpt-image-2')
  assert.equal(defaultModels.has('/v1/responses'), false)
  assert.equal(findModel(prices, 'gpt-4o')?.rates.standard.short.get('input_tokens'), 3_000_000_000n)
})

test('the same price written in another way is no difference', () => {
  const loaded = loadListPrices(
    '{"models":[{"id":"gpt-4o","rates":{"standard":{"input":"3.0","output":"10.00"}}}]}',
  )
  assert.equal(loaded.kind, 'book')
  const file = {
    'gpt-4o': { input_cost_per_token: 3e-6, output_cost_per_token: 1e-5, litellm_provider: 'openai' },
  }
  assert.deepEqual(importing(file, loaded.book.versions[0]).differences, [])
})

const refused: readonly [text: string, problem: RegExp][] = [
  ['{"a":', /^line 1: the document ends too early/],
  ['{"a":1}', /neither/],
  ['[]', /neither/],
  ['5', /neither/],
]
for (const [text, problem] of refused) {
  test(`${text} is not imported`, () => {
    const result = importPrices(text, { shipped, current: shipped, nowMs: 0, only: [] })
    assert.equal(result.kind, 'refused')
    assert.match(result.problems.join('\n'), problem)
  })
}
