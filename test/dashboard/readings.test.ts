import assert from 'node:assert/strict'
import { changesOf } from '../../dashboard/src/forms/changes.ts'
import {
  amountText,
  instantText,
  percentText,
  readAmount,
  readCount,
  readInstant,
  readPercent,
  sumUsd,
} from '../../dashboard/src/forms/readings.ts'
import { test } from '../support/suite.ts'

/** What would be sent, as JSON; `null` for an empty field, `refused` with a reason beside the field. */
const sent = (reading: object) => ('value' in reading ? JSON.stringify(reading.value) : 'refused')

test('amounts are read digit by digit, and every other text is refused', () => {
  for (const [text, json] of [
    ['', 'null'],
    ['50', '50'],
    ['$50', '50'],
    [' 1,000 ', '1000'],
    ['$1,250.5', '1250.5'],
    ['1e3', '1000'],
    ['1.25e1', '12.5'],
    ['.5', '0.5'],
    ['5.', '5'],
    ['0.000000001', '0.000000001'],
    ['999999999.999999999', '999999999.999999999'],
  ] as const)
    assert.equal(sent(readAmount(text)), json, text)
  for (const text of [
    '12,5',
    '12 dollars',
    '10%',
    '1,00',
    '-1',
    '1.0000000001',
    '.',
    '$',
    'e3',
    '1 000',
    '٣',
  ])
    assert.equal(sent(readAmount(text)), 'refused', text)
})

test('percent are read as an exact fraction, and a discount is never removed by a text that is not understood', () => {
  for (const [text, json] of [
    ['', 'null'],
    ['10', '0.1'],
    ['12.5', '0.125'],
    ['0.0000001', '0.000000001'],
    ['100', '1'],
    ['7.3', '0.073'],
  ] as const)
    assert.equal(sent(readPercent(text)), json, text)
  for (const text of ['10%', '12,5', '100.1', '-5', '1e1', 'ten'])
    assert.equal(sent(readPercent(text)), 'refused', text)
})

test('counts are whole numbers', () => {
  assert.deepEqual(['', '60', '1,000', '0.5', '1e3', '60/min'].map(readCount).map(sent), [
    'null',
    '60',
    '1000',
    ...['refused', 'refused', 'refused'],
  ])
})

test('an expiry keeps its seconds and milliseconds on its way through a field', () => {
  for (const at of ['2030-01-02T03:04:05.678Z', '2030-01-02T03:04:05.000Z', '2030-01-02T03:04:00.000Z'])
    assert.equal(Date.parse(JSON.parse(sent(readInstant(instantText(at))))), Date.parse(at))
  assert.equal(sent(readInstant('2030-01-02T03:04')), '"2030-01-02T03:04:00Z"')
})

test('a field shows the digits of its record', () => {
  assert.deepEqual([0.1, 20.2, 1e-9, 1_000_000_000, null].map(amountText), [
    '0.1',
    '20.2',
    '0.000000001',
    '1000000000',
    '',
  ])
  assert.deepEqual([0.125, 0.073, null].map(percentText), ['12.5', '7.3', ''])
})

test('amounts are added without the errors of doubles', () => {
  assert.equal(sumUsd([20.2, 10.1]), 30.3)
  assert.equal(sumUsd([0.1, 0.2, -0.3]), 0)
})

test('an edit sends only the members that were changed', () => {
  const read = (name: string, budget: string, models: readonly string[]) => ({
    name: { value: name },
    monthly_budget_usd: readAmount(budget),
    allowed_models: { value: models },
  })
  assert.deepEqual(changesOf(read('a', '20.20', ['x']), read('b', '$20.2', ['x'])), { name: 'b' })
  assert.deepEqual(changesOf(read('a', '1', ['x']), read('a', '', ['x', 'y'])), {
    monthly_budget_usd: null,
    allowed_models: ['x', 'y'],
  })
})
