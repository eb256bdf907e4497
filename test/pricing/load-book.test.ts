import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { loadBook } from '../../src/pricing/load-book.ts'
import { findModel, type PriceBook, versionAt } from '../../src/pricing/price-book.ts'
import { test } from '../support/suite.ts'
import { shippedBook } from './worked-example.ts'

const MODELS = [
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

function version(id: string, effective_from: string, models: readonly unknown[] = MODELS): unknown {
  return { id, effective_from, tools: TOOLS, models }
}

const small = JSON.stringify({ versions: [version('one', '2026-01-01')] })

function load(text: string, overlay?: string): PriceBook {
  const loaded = loadBook(text, overlay)
  if (loaded.kind === 'refused') throw new Error(loaded.problems.join('\n'))
  return loaded.book
}

function problems(text: string, overlay?: string): readonly string[] {
  const loaded = loadBook(text, overlay)
  return loaded.kind === 'refused' ? loaded.problems : []
}

const at = (text: string): number => Date.parse(text)

test('the shipped file read as text gives the shipped book', () => {
  const text = readFileSync(new URL('../../src/pricing/list-prices.json', import.meta.url), 'utf8')
  assert.deepEqual(load(text), shippedBook)
})

test('a version applies from its first instant until the next one begins', () => {
  const dearer = [{ ...MODELS[0], rates: { standard: { input: '9', output: '9' } } }]
  const book = load(
    JSON.stringify({
      versions: [version('one', '2026-01-01'), version('two', '2026-06-01T12:00:00Z', dearer)],
    }),
  )
  assert.equal(versionAt(book, at('2026-06-01T11:59:59.999Z')).id, 'one')
  assert.equal(versionAt(book, at('2026-06-01T12:00:00Z')).id, 'two')
  assert.equal(versionAt(book, at('2030-01-01')).id, 'two')
})

test('the first version applies before its date too: there is no time without prices', () => {
  assert.equal(versionAt(load(small), at('1999-01-01')).id, 'one')
})

test('a version written out and read again has the same id and the same prices', () => {
  const overlaid = load(small, JSON.stringify({ models: [{ id: 'alpha', aliases: ['a'] }] })).versions[0]
  const again = load(JSON.stringify({ versions: [overlaid.entry] })).versions[0]
  assert.deepEqual(again, overlaid)
})

test('an overlay replaces the rates of a model and keeps what it does not mention', () => {
  const overlay = { models: [{ id: 'beta', rates: { standard: { input: '5', output: '6' } } }] }
  const beta = findModel(load(small, JSON.stringify(overlay)).versions[0], 'beta')
  assert.equal(beta?.contextWindowTokens, 1_000)
  assert.equal(beta?.rates.standard.short.get('input_tokens'), 5_000_000_000n)
  assert.equal(beta?.rates.others.get('batch')?.listed, false)
})

test('an overlay can take away a limit and an alias', () => {
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

test('a name that the overlay gives to another model is taken from the one that had it', () => {
  const own = { id: 'alpha-1', provider: 'openai', rates: { standard: { input: '7', output: '7' } } }
  const prices = load(small, JSON.stringify({ models: [own] })).versions[0]
  assert.equal(findModel(prices, 'alpha-1')?.id, 'alpha-1')
  assert.deepEqual(findModel(prices, 'alpha')?.entry.aliases, [])
})

test('an overlay changes the price of a tool and keeps the others', () => {
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

test('an overlay with a date begins then, and the id says which prices are meant', () => {
  const overlay = JSON.stringify({ effective_from: '2026-12-01', models: [{ id: 'alpha', aliases: ['a'] }] })
  const book = load(small, overlay)
  assert.equal(versionAt(book, at('2026-11-30T23:59:59Z')).id, 'one')
  const after = versionAt(book, at('2026-12-01'))
  assert.match(after.id, /^one\+[0-9a-f]{8}$/)
  assert.equal(findModel(after, 'a')?.id, 'alpha')
})

test('several overlays with dates lie one on the other', () => {
  const overlays = [
    { effective_from: '2027-01-01', models: [{ id: 'alpha', aliases: ['b'] }] },
    { models: [{ id: 'alpha', aliases: ['a'] }] },
  ]
  const book = load(small, JSON.stringify(overlays))
  assert.equal(book.versions.length, 2)
  const [now, later] = [versionAt(book, at('2026-11-15')), versionAt(book, at('2027-01-01'))]
  assert.notEqual(now.id, later.id)
  assert.deepEqual([now.names.has('a'), now.names.has('b')], [true, false])
  assert.deepEqual([later.names.has('a'), later.names.has('b')], [false, true])
})

test('the id of overlaid prices depends on what they are, not on how the file is laid out', () => {
  const overlay = { models: [{ id: 'alpha', aliases: ['a'] }] }
  const id = (text: string): string => load(small, text).versions[0].id
  assert.equal(id(JSON.stringify(overlay)), id(JSON.stringify(overlay, null, 4)))
  assert.notEqual(id(JSON.stringify(overlay)), id('{"models":[]}'))
})

/** Each overlay is wrong in one place; the refusal names the path and the line of that place. */
const wrong: readonly [says: string, overlay: string, problem: RegExp][] = [
  ['what is not JSON', '{"models": [\n}', /^the file is not JSON: Unexpected token/],
  ['a document that is no object', '"prices"', /^the document must be of type object/],
  ['an unknown member', '{\n"model": []}', /^model: is not a member/],
  [
    'an unknown rate',
    '{"models":[{"id":"alpha","rates":{"standard":{"input":"1","output":"1",\n"inputs":"1"}}}]}',
    /^models\[0\]\.rates\.standard\.inputs: is not a member/,
  ],
  [
    'a number instead of a decimal in quotes',
    '{"models":[{"id":"alpha","rates":{"standard":{"output":"1",\n"input":0.1}}}]}',
    /^models\[0\]\.rates\.standard\.input: is the number 0\.1, a binary fraction.*"0\.1"/,
  ],
  [
    'a negative price',
    '{"models":[{"id":"alpha","rates":{"standard":{"output":"1",\n"input":"-1"}}}]}',
    /^.*input: is "-1", and a price is never negative/,
  ],
  [
    'more than nine decimals',
    '{"models":[{"id":"alpha","rates":{"standard":{"output":"1",\n"input":"0.1234567891"}}}]}',
    /^.*input: .* more than 9 decimals/,
  ],
  [
    'a price that is a word',
    '{"models":[{"id":"alpha","rates":{"standard":{"output":"1",\n"input":"free"}}}]}',
    /^.*input: is "free", which is not a plain decimal/,
  ],
  [
    'a price with an exponent',
    '{"models":[{"id":"alpha","rates":{"standard":{"output":"1","input":"1e-6"}}}]}',
    /input: is "1e-6"/,
  ],
  [
    'an alias given twice',
    '{"models":[{"id":"alpha","aliases":["x",\n"x"]}]}',
    /^models\[0\]\.aliases\[1\]: "x" is given twice/,
  ],
  [
    'an alias of two models',
    '{"models":[{"id":"alpha","aliases":["x"]},\n{"id":"beta","aliases":["x"]}]}',
    /^models\[1\]\.aliases\[0\]: "x" is given twice, here and for "alpha"/,
  ],
  [
    'an alias that is the id of a model in the book',
    '{"models":[{"id":"alpha","aliases":[\n"beta"]}]}',
    /^models\[0\]\.aliases\[0\]: "beta" is the id of a model of its own/,
  ],
  ['a model given twice', '{"models":[{"id":"alpha"},\n{"id":"alpha"}]}', /^models\[1\]\.id: .*twice/],
  [
    'a threshold that is no whole number',
    '{"models":[{"id":"alpha","rates":{\n"long_context_above":1.5,"standard":{}}}]}',
    /^models\[0\]\.rates\.long_context_above: must be a whole number/,
  ],
  [
    'a threshold without rates above it',
    '{"models":[{"id":"alpha","rates":{"long_context_above":5,\n"standard":{"input":"1","output":"1"}}}]}',
    /^models\[0\]\.rates\.standard: needs "long_context"/,
  ],
  [
    'rates for long prompts without a threshold',
    '{"models":[{"id":"alpha","rates":{"standard":{"input":"1","output":"1",\n"long_context":{"input":"2"}}}}]}',
    /^.*long_context: needs "long_context_above"/,
  ],
  [
    'a chat model without an output rate',
    '{"models":[{"id":"alpha","rates":{\n"standard":{"input":"1"}}}]}',
    /^models\[0\]\.rates\.standard: a chat model needs a rate for "output"/,
  ],
  [
    'a tier without a rate for one side, which would be free',
    '{"models":[{"id":"alpha","rates":{"standard":{"input":"1","output":"1"},\n"batch":{"input":"0.5"}}}]}',
    /^models\[0\]\.rates\.batch: a chat model needs a rate for "output"/,
  ],
  [
    'long prompts without a rate for one side, which would be free',
    '{"models":[{"id":"alpha","rates":{"long_context_above":5,\n"standard":{"input":"1","output":"1",\n"long_context":{"input":"2"}}}}]}',
    /^models\[0\]\.rates\.standard\.long_context: a chat model needs a rate for "output"/,
  ],
  [
    'a new model without rates',
    '{"models":[\n{"id":"new","provider":"x"}]}',
    /^.*"new" is not in the book, so it needs "rates"/,
  ],
  [
    'a new model without a provider',
    '{"models":[\n{"id":"new","rates":{"standard":{"input":"1","output":"1"}}}]}',
    /^.*needs "provider"/,
  ],
  ['a date that is none', '{"models":[],\n"effective_from":"2026-02-30"}', /^effective_from: is no date/],
  ['a local time', '{"effective_from":"2026-12-01T00:00:00+01:00"}', /effective_from: must be a UTC date/],
  [
    'a multiplier of nothing',
    '{"models":[{"id":"alpha",\n"geography":{"us":"0"}}]}',
    /^.*geography\.us: must be more than 0/,
  ],
  [
    'an endpoint that is no path',
    '{"models":[{"id":"alpha","endpoints":{\n"decisions":{"standard":{}}}}]}',
    /^.*endpoints\.decisions: must begin with \/v1\//,
  ],
  [
    'a default that is no model of the book',
    '{"default_models":{\n"/v1/responses":"gamma"}}',
    /^default_models\.\/v1\/responses: "gamma" is no model of the book/,
  ],
  [
    'a default for what is no path',
    '{"default_models":{\n"responses":"alpha"}}',
    /^default_models\.responses: must begin with \/v1\//,
  ],
  [
    'a mark that is neither true nor false',
    '{"models":[{"id":"alpha",\n"searches_each_call":1}]}',
    /^.*searches_each_call: must be true or false/,
  ],
  [
    'a negative limit',
    '{"models":[{"id":"alpha",\n"max_output_tokens":-1}]}',
    /^.*max_output_tokens: must not be negative/,
  ],
]
for (const [says, overlay, problem] of wrong) {
  test(`an overlay is refused for ${says}, with the path`, () => {
    const [first = ''] = problems(small, overlay)
    assert.match(first, problem)
  })
}

test('all that is wrong with an overlay is said at once, up to a limit', () => {
  const two = '{"models":[{"id":"alpha","rates":{"standard":{"input":1,\n"output":2}}}]}'
  assert.equal(problems(small, two).length, 2)
  const many = JSON.stringify({ models: Array.from({ length: 200 }, () => ({ id: 5 })) })
  assert.deepEqual([problems(small, many).length, problems(small, many).at(-1)], [51, 'and 150 more'])
})

test('an overlay sets defaults by id or alias, of models that it adds too, and keeps the others', () => {
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
  const again = load(`{"versions":[${JSON.stringify(version.entry)}]}`)
  assert.deepEqual(again.versions[0].defaultModels, version.defaultModels)
})

const malformed: readonly [says: string, text: string, problem: RegExp][] = [
  ['no versions', '{"versions":[]}', /versions: must hold at least one/],
  ['no member at all', '{}', /^versions: is missing/],
  [
    'two versions with one id',
    JSON.stringify({ versions: [version('a', '2026-01-01'), version('a', '2026-02-01')] }),
    /id: "a" is the id of another/,
  ],
  [
    'versions out of order',
    JSON.stringify({ versions: [version('a', '2026-02-01'), version('b', '2026-01-01')] }),
    /later than that of the version before/,
  ],
  [
    'a model without rates',
    JSON.stringify({ versions: [version('a', '2026-01-01', [{ id: 'x', provider: 'p' }])] }),
    /models\[0\]\.rates: is missing/,
  ],
  [
    'a default that is none of its models',
    JSON.stringify({
      versions: [{ ...(version('a', '2026-01-01') as object), default_models: { '/v1/responses': 'x' } }],
    }),
    /default_models\.\/v1\/responses: "x" is no model/,
  ],
  [
    'a name given twice',
    JSON.stringify({ versions: [version('a', '2026-01-01', [MODELS[0], { ...MODELS[1], id: 'alpha-1' }])] }),
    /"alpha-1" is given twice/,
  ],
]
for (const [says, text, problem] of malformed) {
  test(`a book with ${says} is refused`, () => assert.match(problems(text).join('\n'), problem))
}
