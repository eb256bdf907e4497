import assert from 'node:assert/strict'
import fc from 'fast-check'
import { rawInteger, rawNumber } from '../../src/kernel/money.ts'
import { csvRow, formatOf } from '../../src/management/csv.ts'
import { anyCharacter } from '../support/any-character.ts'
import { test } from '../support/suite.ts'
import { readCsv } from './read-csv.ts'

test('a row ends in CRLF, and plain cells are not quoted', () => {
  assert.equal(csvRow(['a', 'b c', '']), 'a,b c,\r\n')
})

test('cells with commas, quotes or line breaks are quoted', () => {
  assert.equal(csvRow(['a,b', 'say "hi"', 'x\ry', 'x\ny']), '"a,b","say ""hi""","x\ry","x\ny"\r\n')
})

test('numbers are exact, also negative ones', () => {
  const exact = rawInteger(2n ** 63n)
  assert.equal(
    csvRow([-1, -2n, rawNumber('-0.000000001'), exact, 0]),
    '-1,-2,-0.000000001,9223372036854775808,0\r\n',
  )
})

test('booleans are words, and null is an empty cell', () => {
  assert.equal(csvRow([true, false, null]), 'true,false,\r\n')
})

const formulas = [
  '=1+1',
  '=HYPERLINK("http://x","y")',
  '+1',
  '-1',
  '@SUM(A1)',
  '\t=1',
  '\r=1',
  '\n=1',
  ' =1',
  '\u00a0=1',
  '＝1+1',
  '＋1',
  '－1',
  '＠x',
]
for (const text of formulas) {
  test(`the text ${JSON.stringify(text)} is marked as text and quoted`, () => {
    const row = csvRow([text])
    assert.ok(row.startsWith(`"'`), row)
    assert.deepEqual(readCsv(row), [[`'${text}`]])
  })
}

test('a text with such a character elsewhere is unchanged', () => {
  for (const text of ['a=1', 'gpt-4o', 'me@example.com', "it's", "'quoted'", 'a\t=1'])
    assert.equal(csvRow([text]), `${text}\r\n`)
})

test('a parsed row has the original texts, apart from the mark', () => {
  const texts = fc.array(fc.string({ unit: anyCharacter }), { minLength: 1 })
  const tricky = fc.array(
    fc.string({ unit: fc.constantFrom('"', ',', '\r', '\n', '=', '-', "'", 'a', ' ') }),
    { minLength: 1 },
  )
  fc.assert(
    fc.property(fc.oneof(texts, tricky), (cells) => {
      const [row = [], ...others] = readCsv(csvRow(cells))
      assert.deepEqual(others, [])
      assert.equal(row.length, cells.length)
      for (const [i, cell] of cells.entries()) {
        assert.ok(row[i] === cell || row[i] === `'${cell}`)
        assert.doesNotMatch(row[i] ?? '', /^[=+\-@\t\r]/)
      }
    }),
  )
})

const accepts: readonly [accept: string | null, csv: boolean][] = [
  [null, false],
  ['', false],
  ['*/*', false],
  ['application/json', false],
  ['text/csv', true],
  ['Text/CSV; charset=utf-8', true],
  ['text/*', true],
  ['text/csv, */*', true],
  ['text/csv, */*;q=0.1', true],
  ['application/json, text/csv', false],
  ['application/json;q=0.5, text/csv', true],
  ['application/json, text/csv;q=0.9', false],
  ['text/csv;q=0', false],
  ['text/csv;q=0, */*', false],
  ['text/csv; q=0.2, application/json; q=0.1', true],
  ['text/csv;q=x', false],
  ['text/html, application/xhtml+xml, */*;q=0.8', false],
  ['image/png', false],
]
for (const [accept, csv] of accepts) {
  test(`Accept ${accept === null ? 'absent' : `"${accept}"`} asks for ${csv ? 'CSV' : 'JSON'}`, () => {
    assert.equal(formatOf(undefined, accept === null ? [] : ['Accept', accept]), csv ? 'csv' : 'json')
  })
}
