import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { ERRORS, type ErrorRow } from '../../src/kernel/errors.ts'
import { errorType, shapeError, statusOf } from '../../src/providers/surfaces.ts'
import { readSourceTree } from '../style/source-tree.ts'
import { test } from '../support/suite.ts'

const documentation = readFileSync(new URL('../../docs/ERRORS.md', import.meta.url), 'utf8')
const documentedRows = documentation.split('\n').filter((line) => /^\| \d{3}\b/.test(line))
const entries = Object.entries(ERRORS) as [keyof typeof ERRORS, ErrorRow][]

test('docs/ERRORS.md shows exactly the errors of the table, each with all it says', () => {
  const expected = entries.map(([code, row]) => {
    const after = row.retryAfterSeconds === undefined ? '' : `, after ${row.retryAfterSeconds} s`
    const onMessages = statusOf('messages', code)
    const status = onMessages === row.status ? row.status : `${row.status} (Messages ${onMessages})`
    const types = `\`${errorType('messages', code)}\` | \`${errorType('chat', code)}\``
    return `| ${status} | \`${code}\` | ${types} | ${row.fault} | ${row.retry}${after} | ${row.meaning} |`
  })
  assert.deepEqual(documentedRows, expected)
})

test('every error of the table is used somewhere', () => {
  const source = readSourceTree('src')
    .filter((file) => file.path !== 'src/kernel/errors.ts')
    .map((file) => file.text)
    .join('\n')
  for (const [code] of entries) assert.ok(source.includes(`'${code}'`), `${code} is never refused with`)
})

test('an error on the Messages surface has the form of the Anthropic API and our code', () => {
  const shaped = shapeError('messages', { code: 'invalid_api_key', message: 'No.' }, 'req_1')
  assert.equal(shaped.status, 401)
  assert.deepEqual(JSON.parse(shaped.body.toString()), {
    type: 'error',
    error: { type: 'authentication_error', message: 'No.', code: 'invalid_api_key' },
    request_id: 'req_1',
  })
  assert.equal(shaped.headers[shaped.headers.indexOf('request-id') + 1], 'req_1')
})

test('an error on the Chat surface has the form of the OpenAI API', () => {
  const shaped = shapeError('chat', { code: 'invalid_api_key', message: 'No.' }, 'req_1')
  assert.deepEqual(JSON.parse(shaped.body.toString()), {
    error: { message: 'No.', type: 'invalid_request_error', param: null, code: 'invalid_api_key' },
  })
  assert.equal(shaped.headers[shaped.headers.indexOf('x-request-id') + 1], 'req_1')
})

test('an error of our own endpoints carries the request id in its body too', () => {
  const shaped = shapeError('own', { code: 'bad_request', message: 'No.', param: 'name' }, 'req_1')
  assert.deepEqual(JSON.parse(shaped.body.toString()), {
    error: { message: 'No.', type: 'invalid_request_error', param: 'name', code: 'bad_request' },
    request_id: 'req_1',
  })
})

test('figures go into error.details and into headers, and where Anthropic has its code', () => {
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

test('an empty account is said with the status that each upstream has for it', () => {
  const refusal = { code: 'credit_balance_exhausted', message: 'Empty.' } as const
  assert.equal(shapeError('messages', refusal, 'req_1').status, 400)
  assert.equal(shapeError('chat', refusal, 'req_1').status, 429)
})

test('an error that no retry can mend says so to every reader, and no other error does', () => {
  for (const [code, row] of entries) {
    for (const audience of ['messages', 'chat', 'own'] as const) {
      const { status, headers } = shapeError(audience, { code, message: '' }, 'req_1')
      const said = headers.includes('x-should-retry')
      assert.equal(said, row.retry === 'never', `${code} for ${audience}`)
      if (said) assert.equal(headers[headers.indexOf('x-should-retry') + 1], 'false')
      if ([400, 401, 402, 403, 404, 413, 426].includes(status)) assert.ok(said, `${code} for ${audience}`)
      if (status === 408 || row.retryAfterSeconds !== undefined) assert.ok(!said, `${code} for ${audience}`)
    }
  }
})
