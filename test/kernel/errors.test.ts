import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { ERRORS, type ErrorRow } from '../../src/kernel/errors.ts'
import { errorType, shapeError, statusOf } from '../../src/providers/surfaces.ts'
import { readSourceTree } from '../style/source-tree.ts'
import { test } from '../support/suite.ts'

const documentation = readFileSync(new URL('../../docs/ERRORS.md', import.meta.url), 'utf8')
const documentedRows = documentation.split('\n').filter((line) => /^\| \d{3}\b/.test(line))
const entries = Object.entries(ERRORS) as [keyof typeof ERRORS, ErrorRow][]

test('docs/ERRORS.md shows exactly the errors of the table, each with all its fields', () => {
  const expected = entries.map(([code, row]) => {
    const after = row.retryAfterSeconds === null ? '' : `, after ${row.retryAfterSeconds} s`
    const onMessages = statusOf('messages', code)
    const status = onMessages === row.status ? row.status : `${row.status} (Messages ${onMessages})`
    const types = `\`${errorType('messages', code)}\` | \`${errorType('chat', code)}\``
    return `| ${status} | \`${code}\` | ${types} | ${row.fault} | ${row.retry}${after} | ${row.meaning} |`
  })
  assert.deepEqual(documentedRows, expected)
})

test('every error of the table is used', () => {
  const source = readSourceTree('src')
    .filter((file) => file.path !== 'src/kernel/errors.ts')
    .map((file) => file.text)
    .join('\n')
  for (const [code] of entries) assert.ok(source.includes(`'${code}'`), `${code} is never refused with`)
})

test('an error on the Messages surface has the shape of the Anthropic API and our code', () => {
  const shaped = shapeError('messages', { code: 'invalid_api_key', message: 'No.' }, 'req_1')
  assert.equal(shaped.status, 401)
  assert.deepEqual(JSON.parse(shaped.body.toString()), {
    type: 'error',
    error: { type: 'authentication_error', message: 'No.', code: 'invalid_api_key' },
    request_id: 'req_1',
  })
  assert.equal(shaped.headers[shaped.headers.indexOf('request-id') + 1], 'req_1')
})

test('an error on the Chat surface has the shape of the OpenAI API', () => {
  const shaped = shapeError('chat', { code: 'invalid_api_key', message: 'No.' }, 'req_1')
  assert.deepEqual(JSON.parse(shaped.body.toString()), {
    error: { message: 'No.', type: 'invalid_request_error', param: null, code: 'invalid_api_key' },
  })
  assert.equal(shaped.headers[shaped.headers.indexOf('x-request-id') + 1], 'req_1')
})

test('an error of our own endpoints also has the request id in its body', () => {
  const shaped = shapeError('own', { code: 'bad_request', message: 'No.', param: 'name' }, 'req_1')
  assert.deepEqual(JSON.parse(shaped.body.toString()), {
    error: { message: 'No.', type: 'invalid_request_error', param: 'name', code: 'bad_request' },
    request_id: 'req_1',
  })
})

test('figures are in error.details and in headers, with the code at its Anthropic position', () => {
  const refusal = {
    code: 'budget_exceeded',
    message: 'Spent.',
    details: { cap_usd: 1 },
    headers: ['x-svc-budget-cap-usd', '1'],
  } as const
  const messages = shapeError('messages', refusal, 'req_1')
  assert.equal(messages.status, 402)
  assert.deepEqual(JSON.parse(messages.body.toString()).error.details, {
    error_code: 'budget_exceeded',
    cap_usd: 1,
  })
  const chat = shapeError('chat', refusal, 'req_1')
  assert.deepEqual(JSON.parse(chat.body.toString()).error.details, { cap_usd: 1 })
  assert.equal(chat.headers[chat.headers.indexOf('x-svc-budget-cap-usd') + 1], '1')
})

type Contracted = readonly [
  status: number,
  messagesType: string,
  chatType: string,
  retryAfter: string | null,
  retry: 'never' | 'free',
]

/** The errors as clients rely on them, even those of features that this version lacks. */
const CONTRACT: Readonly<Record<string, Contracted>> = {
  bad_request: [400, 'invalid_request_error', 'invalid_request_error', null, 'never'],
  unknown_model: [400, 'invalid_request_error', 'invalid_request_error', null, 'never'],
  invalid_api_key: [401, 'authentication_error', 'invalid_request_error', null, 'never'],
  budget_exceeded: [402, 'billing_error', 'billing_error', null, 'never'],
  batch_exceeds_budget: [402, 'billing_error', 'billing_error', null, 'never'],
  account_suspended: [403, 'permission_error', 'invalid_request_error', null, 'never'],
  shared_upstream: [403, 'permission_error', 'invalid_request_error', null, 'never'],
  model_not_allowed: [403, 'permission_error', 'invalid_request_error', null, 'never'],
  endpoint_not_allowed: [403, 'permission_error', 'invalid_request_error', null, 'never'],
  admin_key_required: [403, 'permission_error', 'invalid_request_error', null, 'never'],
  insufficient_role: [403, 'permission_error', 'invalid_request_error', null, 'never'],
  not_found: [404, 'not_found_error', 'invalid_request_error', null, 'never'],
  model_not_priced: [400, 'invalid_request_error', 'invalid_request_error', null, 'never'],
  endpoint_not_metered: [404, 'not_found_error', 'invalid_request_error', null, 'never'],
  minting_refused: [404, 'not_found_error', 'invalid_request_error', null, 'never'],
  batch_file_unknown: [404, 'not_found_error', 'invalid_request_error', null, 'never'],
  method_not_allowed: [405, 'invalid_request_error', 'invalid_request_error', null, 'never'],
  request_timeout: [408, 'invalid_request_error', 'invalid_request_error', null, 'free'],
  not_settled: [409, 'conflict_error', 'invalid_request_error', '1', 'free'],
  conflict: [409, 'conflict_error', 'invalid_request_error', null, 'never'],
  balance_not_positive: [409, 'conflict_error', 'invalid_request_error', null, 'never'],
  last_operator_key: [409, 'conflict_error', 'invalid_request_error', null, 'never'],
  body_too_large: [413, 'request_too_large', 'invalid_request_error', null, 'never'],
  expectation_failed: [417, 'invalid_request_error', 'invalid_request_error', null, 'never'],
  websocket_not_supported: [426, 'invalid_request_error', 'invalid_request_error', null, 'never'],
  head_too_large: [431, 'request_too_large', 'invalid_request_error', null, 'never'],
  budget_held: [429, 'rate_limit_error', 'budget', '2', 'free'],
  credit_held: [429, 'rate_limit_error', 'budget', '2', 'free'],
  // The seconds until the next minute are known when the call is refused.
  rate_limit_exceeded: [429, 'rate_limit_error', 'requests', null, 'free'],
  too_many_calls: [429, 'rate_limit_error', 'requests', '1', 'free'],
  credit_balance_exhausted: [429, 'invalid_request_error', 'insufficient_quota', null, 'never'],
  internal_error: [500, 'api_error', 'server_error', null, 'free'],
  upstream_unreachable: [502, 'api_error', 'server_error', null, 'free'],
  upstream_invalid_response: [502, 'api_error', 'server_error', null, 'free'],
  upstream_timeout: [504, 'api_error', 'server_error', null, 'free'],
  store_unavailable: [503, 'api_error', 'server_error', '1', 'free'],
  no_memory: [503, 'api_error', 'server_error', '1', 'free'],
  surface_not_configured: [503, 'api_error', 'server_error', null, 'never'],
}

test('every error has its contracted status, types, retry-after and x-should-retry', () => {
  for (const [code] of entries) {
    const contracted = CONTRACT[code]
    assert.ok(contracted !== undefined, `${code} is in no contract`)
    const [status, messagesType, chatType, retryAfter, retry] = contracted
    for (const audience of ['messages', 'chat', 'own'] as const) {
      const shaped = shapeError(audience, { code, message: '' }, 'req_1')
      const headerOf = (name: string) =>
        shaped.headers.includes(name) ? shaped.headers[shaped.headers.indexOf(name) + 1] : null
      const isEmptyOnMessages = audience === 'messages' && code === 'credit_balance_exhausted'
      assert.deepEqual(
        [shaped.status, JSON.parse(shaped.body.toString()).error.type, headerOf('retry-after')],
        [isEmptyOnMessages ? 400 : status, audience === 'messages' ? messagesType : chatType, retryAfter],
        `${code} for ${audience}`,
      )
      assert.equal(headerOf('x-should-retry'), retry === 'never' ? 'false' : null, `${code} for ${audience}`)
    }
  }
})
