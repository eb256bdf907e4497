import fc from 'fast-check'

const READ = ['model', 'stream', 'max_tokens', 'stream_options', 'tools', 'n', '__proto__', 'kö😀']

const space = fc.array(fc.constantFrom(' ', '\t', '\n', '\r'), { maxLength: 3 }).map((s) => s.join(''))

function escaped(codeUnit: number): string {
  return `\\u${codeUnit.toString(16).padStart(4, '0')}`
}

/** Characters that break scanners, text that looks like structure, long runs that are scanned natively. */
const fragment: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t') },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 0xffff }).map(escaped) },
  { weight: 1, arbitrary: fc.constantFrom('\\ud83d\\ude00', '\\uD800', '\\u0000', '\\u0022', '\\u005C') },
  { weight: 3, arbitrary: fc.constantFrom('ä', '€', '😀', '\u2028', '\u007f', "'", '/*', '//', '#') },
  {
    weight: 3,
    arbitrary: fc.constantFrom('{', '}', '[', ']', ',', ':', '\\",\\"model\\":\\"', 'model', 'null'),
  },
  { weight: 3, arbitrary: fc.string({ unit: 'binary-ascii' }).map((s) => JSON.stringify(s).slice(1, -1)) },
  { weight: 1, arbitrary: fc.integer({ min: 200, max: 600 }).map((n) => 'x'.repeat(n)) },
)

const stringText = fc.array(fragment, { maxLength: 6 }).map((parts) => `"${parts.join('')}"`)

const numberText = fc.oneof(
  fc.constantFrom(
    '0',
    '-0',
    '1e308',
    '1e309',
    '-1',
    '1.5',
    '9223372036854775808',
    '0.1E-7',
    '1E+2',
    '12345.678e9',
  ),
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => JSON.stringify(n)),
)

function spelled(name: string): fc.Arbitrary<string> {
  const choices = fc.array(fc.boolean(), { minLength: name.length, maxLength: name.length })
  return choices.map((escapes) => {
    const characters = [...name].map((character, i) => (escapes[i] ? escapedUnits(character) : character))
    return `"${characters.join('')}"`
  })
}

function escapedUnits(character: string): string {
  return Array.from({ length: character.length }, (_, i) => escaped(character.charCodeAt(i))).join('')
}

const nameText = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...READ).chain(spelled) },
  {
    weight: 12,
    arbitrary: fc
      .constantFrom('messages', 'mode', 'models', 'a', '', 'modelx', 'toString', '"')
      .map((n) => JSON.stringify(n)),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('Model', 'MODEL', '\u017ftream', 'max_to\u212aens', 'N').chain(spelled),
  },
  { weight: 2, arbitrary: stringText },
)

const { value: valueText } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    stringText,
    numberText,
    fc.constantFrom('true', 'false', 'null', '{}', '[]'),
    tie('array'),
    tie('object'),
  ),
  array: fc
    .array(fc.tuple(space, tie('value'), space), { maxLength: 4 })
    .chain((items) =>
      space.map((s) => (items.length === 0 ? `[${s}]` : `[${items.map((i) => i.join('')).join()}]`)),
    ),
  object: fc
    .array(fc.tuple(space, nameText, space, space, tie('value'), space), { maxLength: 4 })
    .map((members) => `{${members.map(([a, n, b, c, v, d]) => `${a}${n}${b}:${c}${v}${d}`).join()}}`),
}))

export const documents: fc.Arbitrary<string> = fc
  .tuple(
    space,
    fc.array(fc.tuple(space, nameText, space, space, valueText, space), { maxLength: 7 }),
    space,
    space,
  )
  .map(([before, members, inside, after]) => {
    const body = members.map(([a, n, b, c, v, d]) => `${a}${n}${b}:${c}${v}${d}`).join()
    return `${before}{${members.length === 0 ? inside : body}}${after}`
  })

const TOKENS = ['{', '}', '[', ']', ',', ':', '"model"', '"n"', '"a"', '1', '-0.5e3', 'true', 'null']
const ODD_TOKENS = [
  '"',
  '\\',
  '"\\u00',
  '-',
  '.5',
  'e',
  'E+1',
  'nul',
  'l',
  '/*',
  '\u0001',
  '\ufeff',
  '01',
  "'a'",
  '\f',
]

const { value: tokensOfValue } = fc.letrec<{ value: string[]; array: string[]; object: string[] }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('"a"', '"model"', '1', '-0.5e3', 'true', 'null').map((token) => [token]),
    tie('array'),
    tie('object'),
  ),
  array: fc.array(tie('value'), { maxLength: 3 }).map((values) => ['[', ...listed(values), ']']),
  object: fc
    .array(fc.tuple(fc.constantFrom('"model"', '"n"', '"a"'), tie('value')), { maxLength: 3 })
    .map((members) => ['{', ...listed(members.map(([name, value]) => [name, ':', ...value])), '}']),
}))

function listed(items: readonly string[][]): string[] {
  return items.flatMap((item, i) => (i === 0 ? item : [',', ...item]))
}

const tokenChange = fc.record({
  at: fc.nat({ max: 60 }),
  removed: fc.nat({ max: 2 }),
  added: fc.array(
    fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...TOKENS) }, fc.constantFrom(...ODD_TOKENS)),
    { maxLength: 2 },
  ),
})

/** Small documents with one or two tokens removed, inserted or replaced: valid or almost valid JSON. */
export const nearDocuments = fc
  .tuple(tokensOfValue, fc.array(tokenChange, { maxLength: 2 }), fc.constantFrom('', '', ' ', '\n'))
  .map(([tokens, changes, space]) => {
    const changed = ['{', '"a"', ':', ...tokens, ',', '"n"', ':', '1', '}']
    for (const { at, removed, added } of changes) changed.splice(at % (changed.length + 1), removed, ...added)
    return changed.join(space)
  })
