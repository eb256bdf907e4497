import assert from 'node:assert/strict'
import fc from 'fast-check'
import { z } from 'zod'
import { creditFields } from '../../src/api/credit.ts'
import { parseInstant, parseOwnJson, usdField } from '../../src/api/fields.ts'
import { keyEditFields, keyListQuery, newKeyFields, rotateFields } from '../../src/api/key.ts'
import { requestListQuery } from '../../src/api/request.ts'
import { usageQuery } from '../../src/api/usage.ts'
import { deliveryListQuery, newWebhookFields, webhookEditFields } from '../../src/api/webhook.ts'
import { limits } from '../../src/kernel/limits.ts'
import { formatUsd } from '../../src/kernel/money.ts'
import { nearestName } from '../../src/kernel/nearest-name.ts'
import { checkBody, checkQuery, parseQuery } from '../../src/management/read-request.ts'
import { duplicateNames } from '../../src/metering/json-tokens.ts'
import { anyCharacter } from '../support/any-character.ts'
import { test } from '../support/suite.ts'

type Bad = readonly [what: string, input: string, param: string | null, message?: RegExp]

function assertRefusals(check: (input: string) => ReturnType<typeof checkBody>, bad: readonly Bad[]): void {
  for (const [what, input, param, message = /./] of bad) {
    const checked = check(input)
    assert.ok(checked.kind === 'refused', what)
    assert.equal(checked.refusal.code, 'bad_request', what)
    assert.equal(checked.refusal.param ?? null, param, what)
    assert.match(checked.refusal.message, message, what)
  }
}

const bodyOf = (schema: z.ZodType) => (text: string) => checkBody(schema, Buffer.from(text))
const queryOf = (schema: z.ZodType) => (query: string) => {
  const parsed = parseQuery(`?${query}`)
  return parsed.kind === 'ok' ? checkQuery(schema, parsed.value) : parsed
}

const long = (chars: number) => JSON.stringify('x'.repeat(chars))
const models = (count: number) => JSON.stringify(Array.from({ length: count }, (_, i) => `m${i}`))
const pairs = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, 'v'])))
const NONE = 'req_01ARZ3NDEKTSV4RRFFQ69G5FAV'

const keyFields: readonly Bad[] = [
  ['an empty name', '"name":""', 'name', /must not be empty/],
  ['a name of 121 emoji', `"name":${JSON.stringify('🔑'.repeat(121))}`, 'name', /at most 120/],
  ['a blank name', '"name":" \\u00a0\\u3000"', 'name', /must not be blank/],
  ['a null name', '"name":null', 'name', /must be a string/],
  ['a name with a line end', '"name":"a\\nb"', 'name', /control characters/],
  ['a name with a C1 control character', '"name":"a\\u0085b"', 'name', /control characters/],
  ['a name with half a character', '"name":"a\\ud83d"', 'name', /well-formed/],
  ['a negative budget', '"monthly_budget_usd":-0.01', 'monthly_budget_usd', /from 0 to 1000000000/],
  [
    'a budget above a billion',
    '"monthly_budget_usd":1000000000.000000001',
    'monthly_budget_usd',
    /from 0 to/,
  ],
  ['a budget with 10 decimals', '"monthly_budget_usd":0.1234567891', 'monthly_budget_usd', /9 decimals/],
  ['a budget of 1e400', '"monthly_budget_usd":1e400', 'monthly_budget_usd', /must be a number/],
  ['a budget as a string', '"monthly_budget_usd":"5"', 'monthly_budget_usd', /must be a number/],
  ['a negative daily budget', '"daily_budget_usd":-1', 'daily_budget_usd', /from 0 to 1000000000/],
  ['a daily budget as a string', '"daily_budget_usd":"5"', 'daily_budget_usd', /must be a number/],
  ...['0', '-1', '1.5', '1000001', '"60"', 'true', '[]'].map(
    (rate): Bad => [
      `a rate of ${rate}`,
      `"requests_per_minute":${rate}`,
      'requests_per_minute',
      /whole number from 1 to 1000000, or null/,
    ],
  ),
  ['an unknown mode', '"budget_mode":"Exact"', 'budget_mode', /must be exact or settled, or null/],
  ...['[]', '"x"', '5'].map(
    (value): Bad => [`metadata ${value}`, `"metadata":${value}`, 'metadata', /null or an object of strings/],
  ),
  ['17 pairs of metadata', `"metadata":${pairs(17)}`, 'metadata', /at most 16 pairs/],
  ['a long name of metadata', `"metadata":{${long(65)}:"x"}`, 'metadata', /name.*at most 64/],
  ['an empty name of metadata', '"metadata":{"":"x"}', 'metadata', /name in metadata must not be empty/],
  ['a long value of metadata', `"metadata":{"x":${long(513)}}`, 'metadata', /value.*at most 512/],
  ['a numeric metadata value', '"metadata":{"x":1}', 'metadata', /must be a string/],
  ['a value of metadata with NUL', '"metadata":{"x":"\\u0000"}', 'metadata', /control characters/],
  ['an empty list of models', '"allowed_models":[]', 'allowed_models', /empty list/],
  ['models as a string', '"allowed_models":"m"', 'allowed_models', /a list of 1 to 200/],
  ['201 models', `"allowed_models":${models(201)}`, 'allowed_models', /at most 200/],
  ['a model twice', '"allowed_models":["m","m"]', 'allowed_models', /twice/],
  ['a null model', '"allowed_models":["m",null]', 'allowed_models', /must be a string/],
  ['a model of 257 characters', `"allowed_models":[${long(257)}]`, 'allowed_models', /at most 256/],
  ['* alone', '"allowed_models":["*"]', 'allowed_models', /must not be `\*`; leave it out/],
  ['a star in the middle', '"allowed_models":["cl*ude"]', 'allowed_models', /end in `\*`/],
  ['two stars', '"allowed_models":["claude-**"]', 'allowed_models', /end in `\*`/],
  ['log_requests: null', '"log_requests":null', 'log_requests', /true or false/],
  ['log_requests: 1', '"log_requests":1', 'log_requests', /true or false/],
  ['a numeric expiry', '"expires_at":4102444800', 'expires_at', /UTC timestamp/],
  ['an expiry without a time', '"expires_at":"2100-01-01"', 'expires_at', /UTC timestamp/],
  ['an expiry in another zone', '"expires_at":"2100-01-01T00:00:00+01:00"', 'expires_at', /UTC timestamp/],
  ['an expiry in small letters', '"expires_at":"2100-01-01t00:00:00z"', 'expires_at', /UTC timestamp/],
  ['a misspelt field', '"monthly_budget":5', 'monthly_budget', /Did you mean monthly_budget_usd\?$/],
  ['a field of the answer', '"status":"usable"', 'status', /not a field/],
  ['a field twice', '"monthly_budget_usd":5,"monthly\\u005fbudget_usd":null', 'monthly_budget_usd', /twice/],
  ['an unknown field twice', '"x":1,"x":2', 'x', /twice/],
  ['__proto__', '"__proto__":{}', '__proto__', /not a field/],
]

test('every wrong field of a key is refused by name, on creation and update', () => {
  const shapes: readonly Bad[] = [
    ['not JSON', '{', null, /not JSON/],
    ['a list', '[]', null, /JSON object/],
    ['null', 'null', null, /JSON object/],
    ['nested 30,000 deep', '['.repeat(30_000), null, /not JSON/],
  ]
  const body = ([what, field, ...rest]: Bad, others: string): Bad => {
    const needed = field.startsWith('"name"') ? '' : others
    return [what, `{${field}${needed}}`, ...rest]
  }
  assertRefusals(bodyOf(newKeyFields), [...shapes, ...keyFields.map((bad) => body(bad, ',"name":"x"'))])
  assertRefusals(bodyOf(newKeyFields), [
    ['no name', '{}', 'name', /name is required/],
    ['no body', '', 'name', /name is required/],
  ])
  assertRefusals(bodyOf(keyEditFields), [...shapes, ...keyFields.map((bad) => body(bad, ''))])
  assert.equal(bodyOf(keyEditFields)('').kind, 'ok', 'an absent body is {}')
  const latin1 = checkBody(newKeyFields, Buffer.from('{"name":"caf\xe9"}', 'latin1'))
  assert.ok(latin1.kind === 'refused' && /UTF-8/.test(latin1.refusal.message))
})

test('fields of a key at their limits are accepted', () => {
  const accepted: readonly [text: string, field: string, value: unknown][] = [
    [JSON.stringify({ name: '🔑'.repeat(120) }), 'name', '🔑'.repeat(120)],
    ['\ufeff{"name":" x"}', 'name', ' x'],
    ['{"name":"x","monthly_budget_usd":-0}', 'monthly_budget_usd', 0n],
    ['{"name":"x","monthly_budget_usd":1e9}', 'monthly_budget_usd', 10n ** 18n],
    ['{"name":"x","monthly_budget_usd":999999999.123456789}', 'monthly_budget_usd', 999999999123456789n],
    ['{"name":"x","daily_budget_usd":0.000000001}', 'daily_budget_usd', 1n],
    ['{"name":"x","requests_per_minute":1000000}', 'requests_per_minute', 1_000_000],
    ['{"name":"x","requests_per_minute":1e2}', 'requests_per_minute', 100],
    ['{"name":"x","budget_mode":null}', 'budget_mode', null],
    ['{"name":"x","metadata":null}', 'metadata', {}],
    [
      `{"name":"x","metadata":{${long(64)}:${long(512)},"e":""}}`,
      'metadata',
      { ['x'.repeat(64)]: 'x'.repeat(512), e: '' },
    ],
    [`{"name":"x","metadata":${pairs(16)}}`, 'metadata', JSON.parse(pairs(16))],
    ['{"name":"x","allowed_models":["claude-*"]}', 'allowed_models', ['claude-*']],
    [
      '{"name":"x","expires_at":"2100-01-01T00:00:00.123999999Z"}',
      'expires_at',
      Date.UTC(2100, 0, 1, 0, 0, 0, 123),
    ],
    ['{"name":"x","expires_at":"2096-02-29T00:00:00-00:00"}', 'expires_at', Date.UTC(2096, 1, 29)],
  ]
  for (const [text, field, value] of accepted) {
    const checked = bodyOf(newKeyFields)(text)
    assert.ok(checked.kind === 'ok', text)
    assert.deepEqual((checked.value as Record<string, unknown>)[field], value)
  }
})

test('every wrong field of a rotation, a credit and a webhook is refused by name', () => {
  const seconds = 'old_expires_in_seconds'
  assertRefusals(
    bodyOf(rotateFields),
    [-1, 31_536_001, 0.5, '"60"', null].map((value) => [String(value), `{"${seconds}":${value}}`, seconds]),
  )
  const ids = (value: unknown) => JSON.stringify({ reason: 'r', request_ids: value })
  const tooMany = Array.from(
    { length: limits.creditBackCallsMax + 1 },
    (_, i) => `req_${String(i).padStart(26, '0')}`,
  )
  assertRefusals(bodyOf(creditFields), [
    ['an amount of 0', '{"amount_usd":0,"reason":"r"}', 'amount_usd'],
    ['an amount with 10 decimals', '{"amount_usd":0.0000000001,"reason":"r"}', 'amount_usd'],
    ['an amount above a billion', '{"amount_usd":1000000001,"reason":"r"}', 'amount_usd'],
    ['a null amount', '{"amount_usd":null,"reason":"r"}', 'amount_usd'],
    ['no reason', '{"amount_usd":1}', 'reason', /reason is required/],
    ['a reason of 501 characters', `{"amount_usd":1,"reason":${long(501)}}`, 'reason'],
    ['an unknown field', '{"amount_usd":1,"reason":"r","currency":"EUR"}', 'currency', /not a field/],
    ['no calls', ids([]), 'request_ids', /1 to 1,000/],
    ['too many calls', ids(tooMany), 'request_ids', /1 to 1,000/],
    ['a call twice', ids([NONE, NONE]), 'request_ids', /twice/],
    ['null calls', ids(null), 'request_ids', /must be a list/],
    ['an id in small letters', ids([NONE.toLowerCase()]), 'request_ids', /ULID/],
  ])
  const hook = (fields: object) => JSON.stringify({ url: 'https://a.example', events: ['*'], ...fields })
  assertRefusals(bodyOf(newWebhookFields), [
    ['no url', hook({ url: undefined }), 'url', /^url is required\.$/],
    ['a url that is too long', hook({ url: `https://a/${'x'.repeat(2_048)}` }), 'url', /at most 2048/],
    ['no events', hook({ events: [] }), 'events', /empty list/],
    ['all events and one more', hook({ events: ['*', 'key.revoked'] }), 'events', /alone/],
    ['an event twice', hook({ events: ['key.revoked', 'key.revoked'] }), 'events', /twice/],
    [
      'an unknown event',
      hook({ events: ['webhook.tested'] }),
      'events',
      /^events must be \["\*"\] or a list of .* Did you mean webhook\.test\?$/,
    ],
    ['an unknown format', hook({ format: 'teams' }), 'format', /standard, slack, or left out\.$/],
    ['a long description', hook({ description: 'x'.repeat(501) }), 'description', /at most 500/],
    ['a secret of its own', hook({ secret: 'whsec_x' }), 'secret', /not a field of this request\./],
  ])
  assertRefusals(bodyOf(webhookEditFields), [['enabled as a word', '{"enabled":"yes"}', 'enabled']])
})

test('a refusal takes little work, however much is wrong', ({ mock }) => {
  const compared = mock.method(Math, 'min').mock
  const checked = mock.method(String.prototype, 'isWellFormed').mock
  const events = Array.from({ length: 2_500 }, () => 'key.creatde')
  const body = JSON.stringify({ url: 'https://a.example', events })
  assertRefusals(bodyOf(newWebhookFields), [['events', body, 'events', /Did you mean key\.created\?$/]])
  assertRefusals(bodyOf(newKeyFields), [['pairs', `{"metadata":${pairs(5_000)}}`, 'name', /required/]])
  assert.equal(nearestName('x'.repeat(65), ['x'], Infinity), null)
  assert.ok(compared.callCount() < 20_000 && checked.callCount() < 100)
})

test('every wrong parameter is refused by name', () => {
  assertRefusals(queryOf(keyListQuery), [
    ...['0', '1001', '-1', '1.5', '1e2', 'ten', ''].map((value): Bad => [value, `limit=${value}`, 'limit']),
    ['limit twice, once encoded', 'limit=5&%6cimit=5', 'limit', /more than once/],
    ['no cursor', 'after=key_1', 'after', /^after must be the `next` of an earlier page\.$/],
    ['a cursor of another kind', `after=${NONE}`, 'after'],
    ['an unknown status', 'status=active', 'status', /one of usable, revoked, expired/],
    ['an empty search', 'search=', 'search'],
    ['a search of 201 characters', `search=${'x'.repeat(201)}`, 'search'],
    ['a control character', 'search=a%00', 'search'],
    ['not percent-encoded', 'search=%zz', 'search'],
    ['not UTF-8', 'search=%ff', 'search'],
    ['a name that is not percent-encoded', '%zz=1', '%zz'],
    ['the removed sort parameter', 'sort=name', 'sort', /not a parameter/],
    ['a misspelt parameter', 'Limit=2', 'Limit', /Did you mean limit\?$/],
    ['__proto__', '__proto__=1', '__proto__'],
    ['no name', '=5', ''],
  ])
  assertRefusals(queryOf(deliveryListQuery), [
    ['no cursor', 'after=whd_1', 'after'],
    ['an unknown status', 'status=late', 'status'],
  ])
  assertRefusals(queryOf(requestListQuery), [
    ...['yesterday', '', '2026-02-30', '2026-13-01', '20261101', '2026-11-01T00:00:00'].map(
      (value): Bad => [value, `start=${value}`, 'start'],
    ),
    ['24:00', 'end=2026-11-01T24:00:00Z', 'end'],
    ['start after end', 'start=2026-11-02&end=2026-11-01', 'start'],
    ['a day after an instant in it', 'start=2026-11-02&end=2026-11-01T23:59:59Z', 'start'],
    ['an empty model', 'model=', 'model'],
    ['a model of 1025 characters', `model=${'x'.repeat(1_025)}`, 'model'],
    ...['', '99', '600', '2xx', '0200', 'settled'].map((value): Bad => [value, `status=${value}`, 'status']),
    ['an unknown state', 'state=open', 'state'],
    ['two states', 'state=settled&flag=refused', 'flag'],
    ...['-1', '-0', 'much', '', '0.0000000001', '1e-3', '.5', '1000000000.000000001', '999999999999'].map(
      (value): Bad => [value, `min_cost_usd=${value}`, 'min_cost_usd'],
    ),
    ['two flags', 'flag=streamed,estimated', 'flag'],
    ['a key id as socket', 'socket=key_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'socket'],
    ['an empty session', 'session=', 'session'],
    ['an invalid parent id', 'parent_id=1', 'parent_id'],
    ['limit 0', 'limit=0', 'limit'],
    ['a page of 1,001', 'limit=1001', 'limit'],
    ['an export of too many', 'limit=10000001&format=csv', 'limit'],
    ['no cursor', 'after=key_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'after'],
    ['a cursor with more behind it', 'after=req_01ARZ3NDEKTSV4RRFFQ69G5FAV!', 'after'],
    ['a format in capitals', 'format=CSV', 'format'],
    ['an unknown parameter', 'key=1', 'key'],
    ['a parameter twice', 'status=200&status=200', 'status'],
  ])
  assert.equal(queryOf(requestListQuery)('limit=10000000&format=csv').kind, 'ok')
  assertRefusals(queryOf(usageQuery), [
    ...['yesterday', '', '2026-02-29', '2026-13-01', '2026-11-00', '%D9%A2026-11-01'].map(
      (value): Bad => [value, `start=${value}`, 'start'],
    ),
    ...['month', 'day,hour', '', 'day,model,day', 'day,,key', 'day,', 'Day', 'constructor'].map(
      (value): Bad => [value, `group_by=${value}`, 'group_by'],
    ),
    ['group_by in brackets', 'group_by[]=day', 'group_by[]'],
    ...['0', '10001', '1e3', '1'.repeat(30)].map((value): Bad => [value, `limit=${value}`, 'limit']),
    ['no key', 'key=mine', 'key'],
    ['an unknown format', 'format=xml', 'format'],
    ['an unknown parameter', 'month=2026-11', 'month'],
  ])
})

const daysIn = (year: number, month: number): number => {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
}

test('an instant is accepted only if the calendar and the clock have it', () => {
  const parts = fc.record({
    year: fc.integer({ min: 1, max: 9999 }),
    month: fc.integer({ min: 0, max: 13 }),
    day: fc.oneof(fc.integer({ min: 0, max: 32 }), fc.constantFrom(28, 29, 30, 31)),
    hour: fc.integer({ min: 0, max: 25 }),
    minute: fc.integer({ min: 0, max: 61 }),
    fraction: fc.option(fc.stringMatching(/^[0-9]{1,9}$/), { nil: '' }),
  })
  fc.assert(
    fc.property(parts, ({ year, month, day, hour, minute, fraction }) => {
      const two = (value: number) => String(value).padStart(2, '0')
      const date = `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`
      const text = `${date}T${two(hour)}:${two(minute)}:59${fraction === '' ? '' : `.${fraction}`}Z`
      const isMonth = month >= 1 && month <= 12
      const isReal = isMonth && day >= 1 && day <= daysIn(year, month) && hour <= 23 && minute <= 59
      const expected = new Date(0)
      expected.setUTCFullYear(year, month - 1, day)
      expected.setUTCHours(hour, minute, 59, Number(fraction.slice(0, 3).padEnd(3, '0')))
      assert.equal(parseInstant(text), isReal ? expected.getTime() : null, text)
    }),
  )
})

test('an amount is read to the nanodollar in every JSON spelling, and more decimals are refused', () => {
  const max = 1_000_000_000_000_000_000n
  const schema = z.strictObject({ a_usd: usdField('a_usd', { min: -max, max }) })
  const read = (number: string) => schema.safeParse(parseOwnJson(`{"a_usd":${number}}`)).data?.a_usd
  fc.assert(
    fc.property(fc.bigInt({ min: -max, max }), fc.integer({ min: 0, max: 20 }), (nanos, shift) => {
      assert.equal(read(formatUsd(nanos)), nanos)
      const size = String(nanos < 0n ? -nanos : nanos)
      const zeros = '0'.repeat(nanos === 0n ? 0 : shift)
      const sign = nanos < 0n ? '-' : ''
      assert.equal(read(`${sign}${size}${zeros}e${-9 - zeros.length}`), nanos)
      assert.equal(read(`${sign}0.${size.padStart(20, '0')}E+11`), nanos)
    }),
  )
  for (const number of ['1e-10', '1.0000000001', '10000000001e-10', '1e-999'])
    assert.equal(read(number), undefined, number)
  for (const number of ['0.1000000000', '100e-2', '0e-999']) assert.notEqual(read(number), undefined, number)
})

test('a duplicate name in an object is found in every spelling', () => {
  const names = fc.uniqueArray(
    fc.oneof(fc.string({ unit: anyCharacter }), fc.constantFrom('a', 'A', '__proto__', 'a\0')),
    { minLength: 1 },
  )
  const find = (text: string) => [...duplicateNames(text)][0] ?? null
  const escaped = (name: string) =>
    `"${Array.from({ length: name.length }, (_, i) => `\\u${name.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`
  fc.assert(
    fc.property(names, fc.nat(), fc.nat(), fc.jsonValue(), (given, which, where, value) => {
      const members = given.map((name) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
      assert.equal(find(`{${members.join()}}`), null)
      const twice = given[which % given.length] ?? ''
      members.splice(where % (members.length + 1), 0, `${escaped(twice)} : null`)
      assert.equal(find(`{${members.join()}}`), twice)
    }),
  )
  assert.equal(find('{"a":{"b":1,"b":2}}'), 'b')
  for (const text of ['{"a":{"a":1},"b":[{"a":1},{"a":1}]}', '[]', 'null', '7'])
    assert.equal(find(text), null, text)
})
