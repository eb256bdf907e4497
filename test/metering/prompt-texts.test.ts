import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PromptTexts } from '../../src/metering/prompt-texts.ts'
import { anyCharacter } from '../support/any-character.ts'
import { inPieces, mutate, mutations, pieceSizes } from './slices.ts'

interface Found {
  readonly texts: readonly string[]
  readonly tokens: number
  readonly isObject: boolean
}

function find(body: string | Buffer, sizes: readonly number[] = [1 << 20]): Found {
  const texts: string[] = []
  let text = ''
  let tokens = 0
  const scanner = new PromptTexts({
    add: (piece) => {
      text += piece
    },
    endText: () => {
      texts.push(text)
      text = ''
    },
    token: () => {
      tokens++
    },
  })
  const isObject = inPieces(
    {
      write: (chunk) => scanner.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)),
      end: () => scanner.end(),
    },
    Buffer.from(body),
    sizes,
  )
  return { texts, tokens, isObject }
}

const NAMES = [
  'text',
  'content',
  'input',
  'prompt',
  'instructions',
  'system',
  'description',
  'arguments',
  'output',
]

/** The texts that JSON.parse finds, in their order. */
function expected(value: unknown, isText = false): (string | number)[] {
  if (typeof value === 'string') return isText ? [value] : []
  if (typeof value === 'number') return isText ? [value] : []
  if (Array.isArray(value)) return value.flatMap((item) => expected(item, isText))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => expected(member, NAMES.includes(name)))
}

test('the texts of both surfaces are found, and what is no text is not', () => {
  const body = {
    model: 'gpt-4o',
    system: [{ type: 'text', text: 'be brief', cache_control: { type: 'ephemeral' } }],
    instructions: 'say it',
    messages: [
      { role: 'user', content: 'Hello' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'what is this?' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        ],
      },
      { role: 'assistant', tool_calls: [{ id: 'x', function: { name: 'f', arguments: '{"a":1}' } }] },
    ],
    tools: [
      { type: 'function', function: { name: 'f', description: 'does it', parameters: { type: 'object' } } },
    ],
    prompt: ['one', 'two'],
    metadata: { user: 'nobody' },
  }
  assert.deepEqual(find(JSON.stringify(body)), {
    texts: ['be brief', 'say it', 'Hello', 'what is this?', '{"a":1}', 'does it', 'one', 'two'],
    tokens: 0,
    isObject: true,
  })
})

test('a prompt of token numbers has as many tokens as numbers', () => {
  assert.equal(find('{"n":3,"input":[[1,22,-3],[ 4 , 5e0 ]],"max_tokens":7}').tokens, 5)
})

test('a name that is spelled with escapes is the same name, and a long one is none', () => {
  assert.deepEqual(find('{"c\\u006fntent":"a","\\u0074\\u0065\\u0078\\u0074":"b"}').texts, ['a', 'b'])
  assert.deepEqual(find(`{"${'x'.repeat(5_000)}text":"a","text":"b"}`, [7]).texts, ['b'])
})

const leaf = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 30 }),
  fc.constantFrom('"', '\\', '\\"', '😀', '世', '{"text":"x"}', '\u0000'),
  fc.integer(),
  fc.constantFrom(true, null, 1.5),
)
const { value: document } = fc.letrec((tie) => ({
  value: fc.dictionary(fc.oneof(fc.constantFrom(...NAMES), fc.string({ maxLength: 5 })), tie('member'), {
    maxKeys: 5,
  }),
  member: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    tie('value'),
    fc.array(tie('member'), { maxLength: 4 }),
  ),
}))

/** Every character beyond ASCII as an escape, as Python writes JSON. */
const toAscii = (text: string) =>
  text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

test('however a body is cut and spelled, what is found is what a parser finds', () => {
  fc.assert(
    fc.property(document, fc.constantFrom(0, 1), fc.boolean(), pieceSizes, (body, indent, ascii, sizes) => {
      const written = JSON.stringify(body, null, indent)
      const { texts, tokens, isObject } = find(ascii ? toAscii(written) : written, sizes)
      const wanted = expected(JSON.parse(written))
      assert.deepEqual(
        texts.map((text) => text.toWellFormed()),
        wanted.filter((value) => typeof value === 'string').map((text) => text.toWellFormed()),
      )
      assert.equal(tokens, wanted.filter((value) => typeof value === 'number').length)
      assert.ok(isObject)
    }),
    { numRuns: 500 },
  )
})

test('a body that is no JSON object is said to be none, and whatever it is the scanner stays on its feet', () => {
  for (const body of [
    '',
    ' ',
    'text',
    '"text"',
    '[]',
    '[{}]',
    '{',
    '{"a":"b',
    '{}}',
    '{} {}',
    '\\',
    '{"a":1}x',
  ])
    assert.equal(find(body).isObject, false, body)
  fc.assert(
    fc.property(document, mutations, pieceSizes, (body, changes, sizes) => {
      find(Buffer.from(mutate(Buffer.from(JSON.stringify(body)), changes)), sizes)
    }),
  )
})

test('what is nested deeper than any request is passed over, and what follows it is found', () => {
  const deep = `${'['.repeat(100_000)}"x"${']'.repeat(100_000)}`
  assert.deepEqual(find(`{"input":${deep},"prompt":"after"}`, [4_096]).texts, ['after'])
})
