import assert from 'node:assert/strict'
import { loadPrices, parseVersion } from '../../src/pricing/load-book.ts'
import { findModel, type PriceBook, suggestModel, versionAt } from '../../src/pricing/price-book.ts'
import type { BookVersionEntry, ModelEntry } from '../../src/pricing/price-file.ts'
import { test } from '../support/suite.ts'
import { shipped } from './worked-example.ts'

const MODELS: ModelEntry[] = [
  { id: 'alpha', provider: 'openai', aliases: ['alpha-1'], rates: { standard: { input: '1', output: '2' } } },
  {
    id: 'beta',
    provider: 'anthropic',
    context_window_tokens: 1_000,
    max_output_tokens: 100,
    rates: { standard: { input: '3', output: '4' }, batch: { input: '1.5', output: '2' } },
  },
]
const TOOLS = { openai: { web_search_per_1000: '10' } }

function version(id: string, effective_from: string, models = MODELS): BookVersionEntry {
  return { id, effective_from, tools: TOOLS, models }
}

const small = [version('one', '2026-01-01')]

/** The first version is the base of a list, and the others are its changes. */
function layersOf([base = version('none', '2026-01-01'), ...changes]: readonly BookVersionEntry[]) {
  return { list: { revision: 1, base, changes }, sets: [], overlays: [] }
}

function load(versions: readonly BookVersionEntry[], overlay?: string): PriceBook {
  const loaded = loadPrices(overlay, layersOf(versions))
  if (loaded.kind === 'refused') throw new Error(loaded.problems.join('\n'))
  return loaded.value.book
}

function problems(versions: readonly BookVersionEntry[], overlay?: string): readonly string[] {
  const loaded = loadPrices(overlay, layersOf(versions))
  return loaded.kind === 'refused' ? loaded.problems : []
}

const at = (text: string): number => Date.parse(text)

test('a version applies from its first instant until the next begins', () => {
  const later = [{ id: 'alpha', provider: 'openai', rates: { standard: { input: '9', output: '9' } } }]
  const book = load([version('one', '2026-01-01'), version('two', '2026-06-01T12:00:00Z', later)])
  assert.equal(versionAt(book, at('2026-06-01T11:59:59.999Z')).id, 'one')
  assert.equal(versionAt(book, at('2026-06-01T12:00:00Z')).id, 'two')
  assert.equal(versionAt(book, at('2030-01-01')).id, 'two')
})

test('the first version also applies before its date', () => {
  assert.equal(versionAt(load(small), at('1999-01-01')).id, 'one')
})

test('a version written out and read again has the same id and prices', () => {
  const overlaid = load(small, JSON.stringify({ models: [{ id: 'alpha', aliases: ['a'] }] })).versions[0]
  for (const version of [overlaid, shipped]) {
    const read = parseVersion(JSON.stringify(version.entry))
    assert.deepEqual([read?.id, read?.models, read?.names], [version.id, version.models, version.names])
  }
  assert.equal(parseVersion('{'), null)
})

test('an overlay replaces the rates of a model and keeps its other fields', () => {
  const overlay = { models: [{ id: 'beta', rates: { standard: { input: '5', output: '6' } } }] }
  const beta = findModel(load(small, JSON.stringify(overlay)).versions[0], 'beta')
  assert.equal(beta?.contextWindowTokens, 1_000)
  assert.equal(beta?.rates.tiers.standard.short.get('input_tokens'), 5_000_000_000n)
  assert.equal(beta?.rates.tiers.batch.listed, false)
})

test('an overlay can remove a limit and an alias', () => {
  const overlay = {
    models: [
      { id: 'beta', max_output_tokens: null },
      { id: 'alpha', aliases: [] },
    ],
  }
  const prices = load(small, JSON.stringify(overlay)).versions[0]
  assert.equal(findModel(prices, 'beta')?.maxOutputTokens, null)
  assert.equal(findModel(prices, 'alpha-1'), null)
})

test('an overlay adds a model', () => {
  const gamma = { id: 'gamma', provider: 'local', rates: { standard: { input: '0', output: '0' } } }
  const prices = load(small, JSON.stringify({ models: [gamma] })).versions[0]
  assert.equal(findModel(prices, 'gamma')?.provider, 'local')
  assert.equal(prices.models.length, 3)
})

test('a name that the overlay gives to a new model is removed from its former model', () => {
  const own = { id: 'alpha-1', provider: 'openai', rates: { standard: { input: '7', output: '7' } } }
  const prices = load(small, JSON.stringify({ models: [own] })).versions[0]
  assert.equal(findModel(prices, 'alpha-1')?.id, 'alpha-1')
  assert.deepEqual(findModel(prices, 'alpha')?.entry.aliases, [])
})

test('an alias that the overlay moves to another model is removed from its former model', () => {
  const models = [
    { id: 'alpha', max_output_tokens: 5 },
    { id: 'beta', aliases: ['alpha-1'] },
  ]
  const prices = load(small, JSON.stringify({ models })).versions[0]
  assert.equal(findModel(prices, 'alpha-1')?.id, 'beta')
  assert.deepEqual(findModel(prices, 'alpha')?.entry.aliases, [])
})

test('an overlay changes the price of one tool and keeps the others', () => {
  const overlay = {
    tools: { openai: { file_search_per_1000: '2' }, anthropic: { web_search_per_1000: '8' } },
  }
  const prices = load(small, JSON.stringify(overlay)).versions[0]
  const tools = findModel(prices, 'alpha')?.tools
  assert.deepEqual(
    [tools?.get('web_searches'), tools?.get('file_searches')],
    [10_000_000_000n, 2_000_000_000n],
  )
  assert.equal(findModel(prices, 'beta')?.tools.get('web_searches'), 8_000_000_000n)
})

test('an overlay with a date applies from then on, and its version id shows the overlay', () => {
  const overlay = JSON.stringify({ effective_from: '2026-12-01', models: [{ id: 'alpha', aliases: ['a'] }] })
  const book = load(small, overlay)
  assert.equal(versionAt(book, at('2026-11-30T23:59:59Z')).id, 'one')
  const after = versionAt(book, at('2026-12-01'))
  assert.match(after.id, /^one\+[0-9a-f]{8}$/)
  assert.equal(findModel(after, 'a')?.id, 'alpha')
})

test('the id of an overlay depends on its prices, not on its layout', () => {
  const overlay = { models: [{ id: 'alpha', aliases: ['a'] }] }
  const id = (text: string): string => load(small, text).versions[0].id
  assert.equal(id(JSON.stringify(overlay)), id(JSON.stringify(overlay, null, 4)))
  assert.notEqual(id(JSON.stringify(overlay)), id('{"models":[]}'))
})

const alpha = (members: string): string => `{"models":[{"id":"alpha",${members}}]}`
const input = (rate: string): string => alpha(`"rates":{"standard":{"output":"1","input":${rate}}}`)
/** An overlay of alpha with these rates at the standard tier, beside `more`. */
const rates = (standard: string, more = ''): string => alpha(`"rates":{${more}"standard":{${standard}}}`)
const decimal = /^model "alpha": rates\.standard\.input: must be a decimal in quotes/

const wrong: readonly [says: string, overlay: string, problem: RegExp][] = [
  ['invalid JSON', '{"models": [}', /^the file is not JSON: Unexpected token/],
  ['a string as the document', '"prices"', /expected object/],
  ['a null document', 'null', /^Invalid input: expected object, received null$/],
  ['an unknown member', '{"model": []}', /^model: is not a member/],
  ['an unknown rate', rates('"input":"1","output":"1","inputs":"1"'), /standard\.inputs: is not a member/],
  ['a number instead of a decimal in quotes', input('0.1'), decimal],
  ['a negative price', input('"-1"'), decimal],
  ['more than nine decimals', input('"0.1234567891"'), decimal],
  ['a word as a price', input('"free"'), decimal],
  ['an alias given twice', alpha('"aliases":["x","x"]'), /^model "alpha": "x" is a name of "alpha" too/],
  ['an alias that is the id of a model', alpha('"aliases":["beta"]'), /"beta" is a name of "alpha" too/],
  ['a model given twice', '{"models":[{"id":"alpha"},{"id":"alpha"}]}', /^models: name a model twice/],
  [
    'a threshold without rates above it',
    rates('"input":"1","output":"1"', '"long_context_above":5,'),
    /^model "alpha": rates: needs both "long_context_above" and "long_context"/,
  ],
  [
    'rates for long prompts without a threshold',
    rates('"input":"1","output":"1","long_context":{"input":"2"}'),
    /^model "alpha": rates: needs both "long_context_above" and "long_context"/,
  ],
  [
    'a chat model without an output rate',
    rates('"input":"1"'),
    /^model "alpha": a chat model needs a standard rate for "output"/,
  ],
  [
    'a chat model without an output rate for long prompts',
    rates('"input":"1","output":"1","long_context":{"input":"2"}', '"long_context_above":5,'),
    /^model "alpha": a chat model needs a standard rate for "output" of long prompts/,
  ],
  [
    'a new model without rates',
    '{"models":[{"id":"new","provider":"x"}]}',
    /^model "new": rates: is missing/,
  ],
  ['an invalid date', '{"models":[],"effective_from":"2026-02-30"}', /^effective_from: must be a UTC date/],
  ['a local time', '{"effective_from":"2026-12-01T00:00:00+01:00"}', /^effective_from: must be a UTC date/],
  ['a multiplier of nothing', alpha('"geography":{"us":"0"}'), /geography\.us: must be more than 0/],
  [
    'an unknown default model',
    '{"default_models":{"/v1/responses":"gamma"}}',
    /^default_models\["\/v1\/responses"\]: there is no model "gamma"/,
  ],
  ['a negative limit', alpha('"max_output_tokens":-1'), /max_output_tokens: must be a whole number/],
]

for (const [says, overlay, problem] of wrong) {
  test(`an overlay is refused for ${says}, with the path`, () => {
    const [first = ''] = problems(small, overlay)
    assert.match(first, problem)
  })
}

test('all errors of an overlay are reported together, up to a limit', () => {
  const two = '{"models":[{"id":"alpha","rates":{"standard":{"input":1,\n"output":2}}}]}'
  assert.equal(problems(small, two).length, 2)
  const many = JSON.stringify({ models: Array.from({ length: 200 }, () => ({ id: 5 })) })
  assert.deepEqual([problems(small, many).length, problems(small, many).at(-1)], [51, 'and 150 more'])
})

test('an overlay sets defaults by id or alias, also of models that it adds, and keeps the others', () => {
  const gamma = { id: 'gamma', provider: 'local', rates: { standard: { input: '0', output: '0' } } }
  const overlays = [
    { default_models: { '/v1/a': 'alpha', '/v1/b': 'beta', '/v1/c': 'beta' } },
    { models: [gamma], default_models: { '/v1/a': 'gamma', '/v1/b': null, '/v1/d': 'alpha-1' } },
  ]
  const [version] = load(small, JSON.stringify(overlays)).versions
  assert.deepEqual(
    [...version.defaultModels],
    [
      ['/v1/a', 'gamma'],
      ['/v1/c', 'beta'],
      ['/v1/d', 'alpha-1'],
    ],
  )
  assert.deepEqual(parseVersion(JSON.stringify(version.entry))?.defaultModels, version.defaultModels)
})

test('unlisted rates of a tier are derived from standard by the tier’s factor, also for long prompts', () => {
  const rates = {
    long_context_above: 5,
    standard: { input: '1', output: '2', long_context: { input: '3', output: '4' } },
    batch: { input: '0.25' },
  }
  const [prices] = load(small, JSON.stringify({ models: [{ id: 'alpha', rates }] })).versions
  const { batch, flex } = findModel(prices, 'alpha')?.rates.tiers ?? {}
  assert.equal(batch?.short.get('output_tokens'), 500_000_000n)
  assert.equal(batch?.long?.get('output_tokens'), 1_000_000_000n)
  assert.equal(flex?.long?.get('input_tokens'), 1_500_000_000n)
})

test('an unlisted tier uses the factor of the provider’s newest model that lists it', () => {
  const standard = { input: '2', output: '8' }
  const listing = (id: string, input: string) => ({
    ...{ id, provider: 'openai' },
    rates: { standard, priority: { input, output: '99' } },
  })
  const models = [listing('gpt-9.1', '6'), listing('gpt-8', '5'), listing('gpt-9', '4')]
  const [prices] = load(small, JSON.stringify({ models })).versions
  for (const version of [prices, parseVersion(JSON.stringify(prices.entry)) ?? assert.fail()]) {
    const priority = (id: string) => findModel(version, id)?.rates.tiers.priority.short.get('output_tokens')
    assert.deepEqual([priority('alpha'), priority('beta')], [6_000_000_000n, 4_000_000_000n])
  }
})

test('text output on an endpoint without a rate for it is not free', () => {
  const endpoints = { '/v1/decisions': { standard: { input: '1' } } }
  const [prices] = load(small, JSON.stringify({ models: [{ id: 'alpha', endpoints }] })).versions
  const rates = findModel(prices, 'alpha')?.endpoints.get('/v1/decisions')?.tiers.standard.short
  assert.equal(rates?.has('output_tokens'), false)
})

test('a mistyped model or pattern suggests the nearest one, and an unrelated name none', () => {
  const nearest = (name: string) => suggestModel(shipped.names.keys(), name)
  assert.equal(nearest('cluade-sonnet-5'), 'claude-sonnet-5')
  assert.equal(nearest('cluade-*'), 'claude-*')
  assert.equal(nearest('claude-haiku'), 'claude-haiku-5-5')
  assert.equal(nearest('gpt-6-lunaa'), 'gpt-6-luna')
  assert.equal(nearest('gpt-6-luna-next-2027'), 'gpt-6-luna')
  assert.equal(nearest('claude-haiku-next'), 'claude-haiku-5-5')
  assert.equal(nearest('gpt-9-mini-x'), 'gpt-5-mini')
  assert.equal(nearest('my-own-model'), null)
  // Of equally near names, the newest.
  assert.equal(suggestModel(['gpt-6.1-sol', 'gpt-6.2-sol', 'gpt-6-sol'], 'gpt-6.3-sol'), 'gpt-6.2-sol')
  // Resembles none of its relatives: the search gives up early, because a client can ask for such names all the time.
  assert.equal(nearest(`gpt-${'x'.repeat(60)}`), 'gpt-transcribe')
})
