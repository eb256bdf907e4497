import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { serveTollgate } from '../support/tollgate-process.ts'
import { CANARIES, contentsOf, type Environment, examineWith, runDoctor, Ward } from './doctor-ward.ts'

const ward = new Ward()
let simulator: Simulator
let upstreams: Environment

before(async () => {
  simulator = await startSimulator({ messagesKey: CANARIES.messagesKey, chatKey: CANARIES.chatKey })
  upstreams = {
    TOLLGATE_MESSAGES_URL: simulator.messagesUrl,
    TOLLGATE_MESSAGES_KEY: CANARIES.messagesKey,
    TOLLGATE_CHAT_URL: simulator.chatUrl,
    TOLLGATE_CHAT_KEY: CANARIES.chatKey,
  }
  await ward.admitHealthy()
})

after(async () => {
  await simulator.close()
  ward.discharge()
})

/** Prices for models that the simulator lists and that have no published price. */
function overlayFor(names: readonly string[]): string {
  const models = names.map((id) => ({
    id,
    provider: 'openai',
    rates: { standard: { input: '1', output: '2' } },
  }))
  const file = join(ward.newFolder(), 'prices.json')
  writeFileSync(file, JSON.stringify({ models }))
  return file
}

test('a healthy installation has nothing to mend, and the doctor leaves no trace in it', async () => {
  const dataDir = ward.healthyCopy()
  const files = contentsOf(dataDir)
  const prices = overlayFor(['claude-fable-5-2', 'claude-mythos-5-2', 'gpt-6-cyber', 'gpt-6-rosalind'])
  const report = await examineWith(dataDir, { ...upstreams, TOLLGATE_PRICES: prices })
  assert.deepEqual(
    report.checks.map(({ name }) => name),
    [
      'runtime',
      'open_files',
      'configuration',
      'surfaces',
      'data_directory',
      'pepper',
      'admin_key',
      'disk_space',
      'disk_speed',
      'database',
      'serving',
      'integrity',
      'upstream_messages',
      'upstream_chat',
      'clock',
      'prices',
    ],
  )
  // These three checks depend on the machine, which may be a poor one.
  const ofTheMachine = new Set(['open_files', 'disk_space', 'disk_speed'])
  for (const check of report.checks)
    if (!ofTheMachine.has(check.name)) assert.equal(check.state, 'ok', JSON.stringify(check))
  assert.match(
    report.check('upstream_chat').found,
    /lists \d+ models, the key in TOLLGATE_CHAT_KEY is accepted/,
  )
  assert.match(report.check('upstream_messages').found, /TCP [\d.]+ ms, answer [\d.]+ ms/)
  assert.match(report.check('prices').found, /all \d+ models that upstream lists have a price/)
  assert.match(report.check('serving').found, /no gateway serves/)
  assert.deepEqual(contentsOf(dataDir), files)
})

test('in a pipe the report is plain lines with words, and says what to do', async () => {
  const { code, stdout, stderr } = await runDoctor(ward.healthyCopy(), ['--offline'])
  assert.equal(code, 0)
  assert.equal(stderr, '')
  assert.match(stdout, /^ok {7}runtime {12}Node\.js 2\d\./)
  assert.match(
    stdout,
    /^warning {2}surfaces {11}the built-in simulator only: .*\n {28}to do: For real use set /m,
  )
  assert.match(stdout, /\n\n\d+ warnings?\.\n$/)
  assert.ok(!/[\x1b✓✗→]/.test(stdout))
})

test('without a network no upstream is asked', async () => {
  const before = simulator.requests
  const report = await examineWith(ward.healthyCopy(), upstreams, ['--offline'])
  assert.equal(simulator.requests, before)
  for (const name of ['upstream_messages', 'upstream_chat', 'clock'])
    assert.equal(report.check(name).state, 'skipped')
  assert.equal(report.check('prices').state, 'ok')
})

test('beside a running gateway the doctor says that it serves, and how many calls are in flight', async () => {
  const tollgate = await serveTollgate(upstreams)
  try {
    const report = await examineWith(tollgate.dataDir, upstreams)
    assert.equal(report.check('serving').found, 'a gateway serves from here now, with 0 calls in flight')
    assert.equal(report.check('admin_key').found, '1 key in force')
    assert.equal(report.check('integrity').state, 'ok')
    assert.equal((await fetch(`${tollgate.url}/readyz`)).status, 200)
  } finally {
    await tollgate.dispose()
  }
})

test('before the first start the doctor warns that there is no data directory, and makes none', async () => {
  const dataDir = join(ward.newFolder(), 'deep', 'data')
  const report = await examineWith(dataDir, upstreams)
  const check = report.check('data_directory')
  assert.equal(check.state, 'warning')
  assert.match(check.found, /data is not there yet$/)
  assert.match(check.todo ?? '', /The first start creates it/)
  assert.match(report.check('disk_space').found, / free of /)
  assert.equal(existsSync(join(dataDir, '..')), false)
})

test('everything that is wrong with the configuration is listed, and the rest is looked at all the same', async () => {
  const dataDir = ward.healthyCopy()
  writeFileSync(join(dataDir, '..', 'tollgate.json'), '{"stateful":"maybe","budget":{}}')
  const before = simulator.requests
  const report = await examineWith(dataDir, { ...upstreams, TOLLGATE_PORT: 'eighty', TOLLGATE_DISCOUNT: '2' })
  const problems = report.checks.filter(({ name }) => name === 'configuration')
  assert.deepEqual(
    problems.map(({ state }) => state),
    ['problem', 'problem', 'problem', 'problem'],
  )
  const found = problems.map((check) => check.found).join('\n')
  for (const text of [
    'TOLLGATE_PORT must be',
    'TOLLGATE_DISCOUNT must be',
    '"stateful" must',
    '"budget" is not',
  ])
    assert.ok(found.includes(text), `${text} in ${found}`)
  assert.equal(report.code, 1)
  for (const name of ['database', 'integrity', 'upstream_messages', 'upstream_chat'])
    assert.equal(report.check(name).state, 'ok')
  assert.equal(simulator.requests, before + 2)
})

test('a key is sent nowhere while the variables do not say for certain where it belongs', async () => {
  const before = simulator.requests
  const mistyped = await examineWith(ward.healthyCopy(), { ...upstreams, TOLLGATE_MESSAGE_URL: 'http://x' })
  assert.match(mistyped.check('configuration').found, /did you mean TOLLGATE_MESSAGES_URL/)
  for (const name of ['upstream_messages', 'upstream_chat'])
    assert.equal(mistyped.check(name).found, 'not asked before its configuration is good')
  assert.equal(simulator.requests, before)

  const half = await examineWith(ward.healthyCopy(), { ...upstreams, TOLLGATE_MESSAGES_URL: 'nonsense' })
  assert.equal(half.check('upstream_messages').state, 'skipped')
  assert.equal(half.check('upstream_chat').state, 'ok')
  assert.equal(simulator.requests, before + 1)
})

test('a bad price overlay is a problem that names the line', async () => {
  const file = join(ward.newFolder(), 'prices.json')
  writeFileSync(file, '{\n  "models": [{ "id": "x", "prise": 1 }]\n}')
  const report = await examineWith(ward.healthyCopy(), { TOLLGATE_PRICES: file }, ['--offline'])
  const [first] = report.checks.filter(({ name }) => name === 'prices')
  assert.equal(first?.state, 'problem')
  assert.match(first?.found ?? '', /prices\.json: line 2/)
  assert.match(first?.todo ?? '', /tollgate prices check/)
})

test('the insecure HTTP parser is a problem', async () => {
  const environment = { NODE_OPTIONS: '--insecure-http-parser' }
  const report = await examineWith(ward.healthyCopy(), environment, ['--offline'])
  assert.equal(report.check('runtime').state, 'problem')
  assert.match(report.check('runtime').todo ?? '', /NODE_OPTIONS/)
})

test('the help has examples, and a wrong command line is told with exit code 2', async () => {
  const dataDir = ward.healthyCopy()
  const help = await runDoctor(dataDir, ['--help'])
  assert.equal(help.code, 0)
  assert.match(help.stdout, /^Usage\n {2}tollgate doctor [\s\S]*\nExamples\n[\s\S]*\nExit codes\n/)
  for (const args of [['--jsno'], ['--timeout'], ['--timeout', '0'], ['--timeout', '1e3'], ['everything']]) {
    const wrong = await runDoctor(dataDir, args)
    assert.equal(wrong.code, 2, args.join(' '))
    assert.equal(wrong.stdout, '')
    assert.match(wrong.stderr, /^tollgate doctor: [\s\S]*\nUsage\n/)
  }
})
