import assert from 'node:assert/strict'
import {
  byStore,
  type Dialect,
  join,
  json,
  now,
  onPostgres,
  raw,
  render,
  sql,
} from '../../../src/store/operations/sql.ts'
import { insertInto } from '../../../src/store/operations/write-rows.ts'
import { test } from '../../support/suite.ts'

const sqlite: Dialect = { store: 'sqlite', clock: 'caller' }
const postgres: Dialect = { ...sqlite, store: 'postgres' }

test('a value becomes a parameter, and a nested statement becomes text', () => {
  const whose = sql`account_id = ${'a'} AND at_ms <= ${1_999.9}`
  const statement = sql`SELECT ${raw('id')} FROM t WHERE ${whose} AND flag = ${true} AND n = ${7n}`
  assert.deepEqual(render(statement, sqlite), {
    text: 'SELECT id FROM t WHERE account_id = ? AND at_ms <= ? AND flag = ? AND n = ?',
    values: ['a', 1_999n, 1n, 7n],
  })
  assert.deepEqual(render(statement, postgres), {
    text: 'SELECT id FROM t WHERE account_id = $1::text AND at_ms <= $2::bigint AND flag = $3::boolean AND n = $4::bigint',
    values: ['a', 1_999n, true, 7n],
  })
})

test('outside text never becomes part of a statement', () => {
  const hostile = "'; DROP TABLE call; --"
  for (const dialect of [sqlite, postgres]) {
    const { text, values } = render(sql`SELECT ${join([hostile, json([hostile])])}`, dialect)
    assert.ok(!text.includes('DROP'), text)
    assert.deepEqual(values, [hostile, JSON.stringify([hostile])])
  }
})

test('null is written as NULL without a type', () => {
  const statement = sql`INSERT INTO t VALUES ${join([sql`(${null}, ${1})`, sql`(${'x'}, ${json(null)})`])}`
  assert.equal(render(statement, sqlite).text, 'INSERT INTO t VALUES (NULL, ?), (?, NULL)')
  assert.equal(render(statement, postgres).text, 'INSERT INTO t VALUES (NULL, $1::bigint), ($2::text, NULL)')
})

test('each store gets its own text and only the values of that text', () => {
  const statement = sql`${byStore({ sqlite: sql`a = ${1}`, postgres: sql`b = ${'x'}` })}${onPostgres(' FOR UPDATE')}`
  assert.deepEqual(render(statement, sqlite), { text: 'a = ?', values: [1n] })
  assert.deepEqual(render(statement, postgres), { text: 'b = $1::text FOR UPDATE', values: ['x'] })
  assert.equal(render(onPostgres('SELECT 1'), sqlite).text, '')
})

test("now() is the caller's clock or the database's", () => {
  assert.deepEqual(render(now(5), postgres), { text: '$1::bigint', values: [5n] })
  assert.deepEqual(render(now(5), { ...postgres, clock: 'database' }), { text: 'now_ms()', values: [] })
})

test('records with different members are inserted with the columns of all', () => {
  assert.deepEqual(render(insertInto('setting', [{ name: 'a' }, { name: 'b', value: 'c' }]), sqlite), {
    text: 'INSERT INTO setting (name, value) VALUES (?, NULL), (?, ?) ',
    values: ['a', 'b', 'c'],
  })
})

test('U+0000, and in JSON a lone surrogate, is stored as U+FFFD in both databases', () => {
  for (const dialect of [sqlite, postgres])
    assert.deepEqual(
      render(sql`SELECT ${'a\0b\u0001'}, ${json(['\0', '\ud800', '\u0001'])}`, dialect).values,
      ['a\ufffdb\u0001', JSON.stringify(['\ufffd', '\ufffd', '\u0001'])],
    )
})
