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

test('every error is sent with its documented status, type, retry-after and x-should-retry', () => {
  for (const row of documentedRows) {
    const cells = row.split('|').map((cell) => cell.trim().replaceAll('`', ''))
    const [, statuses = '', code = '', messagesType = '', chatType = '', , retry = ''] = cells
    const [status, onMessages = status] = statuses.match(/\d+/g) ?? []
    const retryAfter = /, after (\d+) s$/.exec(retry)?.[1] ?? null
    for (const audience of ['messages', 'chat', 'own'] as const) {
      const shaped = shapeError(audience, { code: code as keyof typeof ERRORS, message: '' }, 'req_1')
      const headerOf = (name: string) =>
        shaped.headers.includes(name) ? shaped.headers[shaped.headers.indexOf(name) + 1] : null
      const isMessages = audience === 'messages'
      assert.deepEqual(
        [shaped.status, JSON.parse(shaped.body.toString()).error.type, headerOf('retry-after')],
        [Number(isMessages ? onMessages : status), isMessages ? messagesType : chatType, retryAfter],
        `${code} for ${audience}`,
      )
      const shouldRetry = retry.startsWith('never') ? 'false' : null
      assert.equal(headerOf('x-should-retry'), shouldRetry, `${code} for ${audience}`)
    }
  }
})
