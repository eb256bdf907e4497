import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { assertAllWrong, type CommandBench, startCommandBench, WAYS } from './command-bench.ts'

let bench: CommandBench
let day = ''
before(async () => {
  bench = await startCommandBench()
  await bench.gateway.call(1_000)
  await bench.gateway.call(3_000)
  await bench.gateway.call(90_000, 'claude-opus-4-8')
  day = JSON.parse(await bench.api('/v1/usage?group_by=day')).data[0].day
})
after(() => bench.close())

const range = () => ['--start', day, '--end', day]

for (const way of WAYS) {
  test(`usage is a plain table in a pipe, ${way}`, async () => {
    const byModel = await bench.run(way, ['usage', ...range(), '--group-by', 'model'])
    assert.deepEqual(byModel, {
      code: 0,
      signal: null,
      stderr: '',
      stdout: [
        `Usage from ${day} to ${day}, days in UTC, amounts in USD`,
        '',
        'model             calls   input    cost  at list price',
        'claude-haiku-5-5      2   4,000  0.0004         0.0004',
        'claude-opus-4-8       1  90,000  0.4500         0.4500',
        'total                 3  94,000  0.4504         0.4504',
        '',
        'Saved 0 of 0.4504 USD at list prices (0 %).',
        '',
      ].join('\n'),
    })
    const byDay = await bench.run(way, ['usage'])
    assert.match(byDay.stdout, new RegExp(`\\nday \\(UTC\\) .*\\n${day} +3 +94,000 .*\\ntotal +3 `))
    const sum = await bench.run(way, ['usage', ...range(), '--group-by', 'none'])
    assert.match(sum.stdout, /\n {4}3 {2}94,000 .*\n\nSaved/)
    const none = await bench.run(way, ['usage', '--start', '2020-01-01', '--end', '2020-01-02'])
    assert.match(none.stdout, /from 2020-01-01 to 2020-01-02, .*\n\nNothing was used\.\n$/)
  })

  test(`--json and --csv are what the API answers, ${way}`, async () => {
    const json = await bench.run(way, ['usage', ...range(), '--group-by', 'key,model', '--json'])
    const query = `start=${day}&end=${day}&limit=10000&group_by=`
    assert.deepEqual([json.code, json.stdout], [0, `${await bench.api(`/v1/usage?${query}key,model`)}\n`])
    const csv = await bench.run(way, ['usage', ...range(), '--csv'])
    assert.deepEqual([csv.code, csv.stdout], [0, await bench.api(`/v1/usage?${query}day&format=csv`)])
  })
}

test('on a terminal each row has a bar as long as its cost, and a narrow one shows less for it', async () => {
  const args = ['usage', ...range(), '--group-by', 'model']
  const environment = { LANG: 'en_US.UTF-8', LC_ALL: '' }
  const wide = await bench.run('locally', args, { terminal: { columns: 130 }, environment })
  assert.match(wide.stdout, /claude-opus-4-8 .* 0\.4500 {2}\x1b\[36m█{40}\x1b\[39m\n/)
  assert.match(wide.stdout, /claude-haiku-5-5 .* 0\.0004 {2}\x1b\[36m█\x1b\[39m\n/)
  assert.match(wide.stdout, /\x1b\[1mtotal\x1b\[22m .*\x1b\[1m0\.4504\x1b\[22m\n/)

  const narrow = await bench.run('locally', [...args, '--no-color'], {
    terminal: { columns: 80 },
    environment: { LANG: 'C', LC_ALL: '' },
  })
  assert.match(narrow.stdout, /\nmodel +calls +input +cost +at list price\nclaude-haiku.* 0\.0004 {2}#\n/)
  assert.match(narrow.stdout, /claude-opus.* 0\.4500 {2}#{21,40}\n/)
  for (const line of narrow.stdout.split('\n')) assert.ok(line.length < 80, line)
})

test('credits, missing prices, estimates and hostile names are told of, and keys have their names', async () => {
  await bench.gateway.tamper("UPDATE api_key SET name = '\x1b]0;x\x07éa' WHERE name = 'x'")
  await bench.gateway.tamper(
    `UPDATE rollup SET credited_nanos = 1, unpriced_requests = 1, estimated_requests = 2, list_nanos = 900000000
     WHERE model = 'claude-opus-4-8'`,
  )
  try {
    const { stdout } = await bench.run('locally', ['usage', ...range(), '--group-by', 'model,key'])
    assert.match(stdout, /\nmodel +key +name +calls /)
    assert.match(stdout, /claude-opus-4-8 +key_\w{26} {2}\?\]0;x\?éa +1 .* 0\.4500 +0\.9000 +0\.000000001\n/)
    assert.match(
      stdout,
      /\nSaved 0\.45 of 0\.9004 USD at list prices \(49\.9 %\)\.\nGiven back later: 0\.000000001 USD/,
    )
    assert.match(
      stdout,
      /\nCalls without a price of their own: 1\. .*\nCalls whose usage was estimated: 2\.\n$/,
    )
  } finally {
    await bench.gateway.tamper(
      `UPDATE rollup SET credited_nanos = 0, unpriced_requests = 0, estimated_requests = 0, list_nanos = cost_nanos
       WHERE model = 'claude-opus-4-8'`,
    )
  }
})

test('what is read from a cache and what is written to it are two columns, and empty rows are told of in one line', async () => {
  await bench.gateway.tamper(`
    INSERT INTO rollup (account_id, key_id, day, model, requests, cache_read_tokens, cache_write_tokens, cost_nanos)
      SELECT account_id, key_id, '2020-01-05', 'cached', 2, 5000, 70, 1 FROM (SELECT * FROM rollup LIMIT 1) AS r
      UNION ALL
      SELECT account_id, key_id, '2020-01-05', '', 41, 0, 0, 0 FROM (SELECT * FROM rollup LIMIT 1) AS r
      UNION ALL
      SELECT account_id, key_id, '2020-01-06', '', 1, 0, 0, 0 FROM (SELECT * FROM rollup LIMIT 1) AS r`)
  const { stdout } = await bench.run('locally', [
    ...['usage', '--start', '2020-01-05', '--end', '2020-01-05', '--group-by', 'model'],
  ])
  assert.deepEqual(stdout.split('\n').slice(2), [
    'model   calls  cache read  cache write         cost',
    'cached      2       5,000           70  0.000000001',
    'total      43       5,000           70  0.000000001',
    '',
    'Saved -0.000000001 of 0 USD at list prices.',
    'Not listed: 41 calls that used nothing and cost nothing.',
    '',
  ])
  const idle = await bench.run('locally', ['usage', '--start', '2020-01-06', '--end', '2020-01-06'])
  assert.match(
    idle.stdout,
    /\n\nNothing was used\.\nNot listed: 1 call that used nothing and cost nothing\.\n$/,
  )
})

test('more rows than the API answers at once are one CSV with one head, and the table says that it is cut', async () => {
  await bench.gateway.tamper(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20005)
      INSERT INTO rollup (account_id, key_id, day, model, requests, input_tokens)
      SELECT account_id, key_id, '2020-02-02', 'model-' || (100000 + i), i, 1 FROM n, (SELECT * FROM rollup LIMIT 1)`)
  const args = ['usage', '--start', '2020-02-02', '--end', '2020-02-02', '--group-by', 'model']
  for (const way of WAYS) {
    const csv = await bench.run(way, [...args, '--csv'], { terminal: { columns: 80, only: 'stderr' } })
    const lines = csv.stdout.split('\r\n')
    assert.equal(lines.length, 1 + 20_005 + 1)
    assert.equal(lines.filter((line) => line.startsWith('model,')).length, 1)
    assert.equal(new Set(lines).size, lines.length)
    assert.match(csv.stderr, /^\rRows: 10,000/)
  }
  const table = await bench.run('locally', args)
  assert.equal(table.code, 0)
  assert.match(table.stderr, /first 10,000 rows\. --csv has them all/)
  assert.match(table.stdout, /\ntotal +200,110,015 /)
})

test('a wrong command line ends with 2 and names what is wrong with it', async () => {
  await assertAllWrong(bench, 'usage', [
    [
      ['--start', '2026-02-30'],
      /^tollgate usage: --start: start must be a date[\s\S]*\n\nUsage\n {2}tollgate usage /,
    ],
    [['--end', 'today'], /--end: end must be a date/],
    [['--start', '2999-01-01'], /--start: start must not be after end/],
    [['--group-by', 'colour'], /--group-by: group_by must be one or more of day, model, key/],
    [['--group-by', 'day,day'], /--group-by: /],
    [['--json', '--csv'], /--json and --csv cannot be used together/],
    [['--since', 'x'], /'--since'/],
    [['today'], /Unexpected argument 'today'/],
  ])
  const help = await bench.run('locally', ['usage', '--help'])
  assert.equal(help.code, 0)
  assert.match(
    help.stdout,
    /^Usage\n {2}tollgate usage [\s\S]*\nExamples\n[\s\S]*\nWhere\n[\s\S]*\nExit codes\n/,
  )
})
