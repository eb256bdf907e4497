import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { FULL_SCALE } from './support/scale.ts'

/** `npm run test:long [-- run [argument …]]`: all runs are made even if one fails; the end names failures. */
type Run = readonly [file: string, env?: Readonly<Record<string, string>>, ...args: string[]]

const FULL = { TEST_SCALE: String(FULL_SCALE) }

const RUNS: Readonly<Record<string, Run>> = {
  suite: ['test/run.ts', FULL],
  crash: ['test/crash/long-run.ts'],
  'crash-postgres': ['test/crash/long-run.ts', { TEST_STORE: 'postgres' }],
  chaos: ['test/cluster/long-chaos.ts'],
  'node-versions': ['test/docs/long-node-versions.ts'],
  package: ['test/run.ts', {}, 'test/deploy/long-package.ts'],
  agents: ['test/sign-in/long-agents.ts'],
  'fifty-nodes': ['test/store/long-fifty-nodes.ts'],
  pgbouncer: ['test/run.ts', {}, 'postgres', 'test/store/long-pgbouncer.ts'],
  jam: ['test/hostile/long-jam.ts'],
  simulation: ['test/store/long-simulation.ts', FULL],
  years: ['test/ledger/long-years.ts'],
  'years-postgres': ['test/ledger/long-years.ts', { TEST_STORE: 'postgres' }],
  'simulation-postgres': ['test/store/long-simulation.ts', { ...FULL, TEST_STORE: 'postgres' }],
}

async function play([file, env, ...first]: Run, args: readonly string[]): Promise<boolean> {
  const child = spawn(process.execPath, [file, ...first, ...args], {
    cwd: new URL('..', import.meta.url),
    env: { ...process.env, ...env },
    stdio: 'inherit',
  })
  const [code] = await once(child, 'exit')
  return code === 0
}

const [name, ...args] = process.argv.slice(2)
const chosen = Object.entries(RUNS).filter(([run]) => name === undefined || run === name)
if (chosen.length === 0) throw new Error(`"${name}" is none of ${Object.keys(RUNS).join(', ')}`)
const results: string[] = []
for (const [run, what] of chosen) {
  const startedMs = performance.now()
  process.stdout.write(`\n== ${run}\n`)
  const passed = await play(what, args)
  const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1)
  results.push(`${passed ? 'passed' : 'FAILED'}  ${run}, ${minutes} min`)
  if (!passed) process.exitCode = 1
}
process.stdout.write(`\n${results.join('\n')}\n`)
