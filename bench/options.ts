import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

export const HELP = `Usage
  npm run bench -- [options]

Measures Tollgate beside a direct connection, nginx (if installed) and a bare pipe of Node: each in a fresh process
pinned to one core, the load and the upstream on another, in alternating order. Writes rounds, tables and charts to
bench/results, which git ignores. A whole run takes an hour; nothing else should run on the machine.

  --only <names>       only workloads whose names begin so, with commas between: 2kB, streams-300, keys, accounts, people,
                       usage, start, stores, many-nodes, one-port
  --subjects <names>   only these, of direct, nginx, pipe, tollgate
  --rounds <n>         rounds of each workload (5)
  --seconds <s>        how long each is measured (5)
  --warm-up <s>        how long each is warmed up at least (4); four times as long if requests are answered
                       slowly
  --quick              everything once with reduced sizes, in some two minutes: shows that it works, not how fast it is
  --soak <minutes>     also a long run that watches memory; alone with --only soak (then 10 minutes unless given)
  --compare <rev>      Tollgate of that revision against Tollgate as it stands here; others only if named
  --abba <workload>    two warm subjects in short alternating rounds until the ratio is known to 3 %, such as
                       --abba 2kB-32 --subjects pipe,tollgate, with the processor time of each thread
  --profile <workload> the processor time of Tollgate per request, by thread and folder of src
  --out <folder>       where the results go (bench/results; for a quick run bench/results/quick)
  --list               the names of the workloads, and nothing else
  --help               this

Examples
  npm run bench -- --only 2kB --subjects pipe,tollgate --rounds 3 --seconds 5
  npm run bench -- --compare HEAD~3 --only 2kB-32,streams-300
  npm run bench -- --only soak --soak 10
`

export const SUBJECT_NAMES = ['direct', 'nginx', 'pipe', 'tollgate'] as const
export type SubjectName = (typeof SUBJECT_NAMES)[number]

export interface Options {
  readonly only: readonly string[] | null
  readonly subjects: readonly SubjectName[]
  readonly rounds: number
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly quick: boolean
  /** Null: no soak. */
  readonly soakMinutes: number | null
  readonly compare: string | null
  /** One workload of requests, instead of the groups. */
  readonly abba: string | null
  readonly profile: string | null
  readonly out: string
  readonly list: boolean
  readonly help: boolean
}

export class OptionsError extends Error {
  override readonly name = 'OptionsError'
}

export function readOptions(args: readonly string[]): Options {
  const { values } = parse(args)
  const only = values.only === undefined ? null : names(values.only)
  const quick = values.quick
  const soaks = values.soak !== undefined || only?.includes('soak') === true
  return {
    only,
    subjects: chooseSubjects(values.subjects, values.compare !== undefined),
    rounds: number('rounds', values.rounds, quick ? 1 : 5, 1),
    seconds: number('seconds', values.seconds, quick ? 1 : 5, 0.1),
    warmUpSeconds: number('warm-up', values['warm-up'], quick ? 0.5 : 4, 0),
    quick,
    soakMinutes: soaks ? number('soak', values.soak, quick ? 0.5 : 10, 0.1) : null,
    compare: values.compare ?? null,
    abba: values.abba ?? null,
    profile: values.profile ?? null,
    out: resolve(values.out ?? fileURLToPath(new URL(quick ? 'results/quick' : 'results', import.meta.url))),
    list: values.list,
    help: values.help,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        only: { type: 'string' },
        subjects: { type: 'string' },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        'warm-up': { type: 'string' },
        quick: { type: 'boolean', default: false },
        soak: { type: 'string' },
        compare: { type: 'string' },
        abba: { type: 'string' },
        profile: { type: 'string' },
        out: { type: 'string' },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (error) {
    throw new OptionsError((error as Error).message)
  }
}

function names(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)
}

function chooseSubjects(text: string | undefined, comparing: boolean): SubjectName[] {
  if (text === undefined) return comparing ? ['tollgate'] : [...SUBJECT_NAMES]
  const asked = names(text)
  const unknown = asked.filter((name) => !SUBJECT_NAMES.some((known) => known === name))
  if (unknown.length > 0) {
    throw new OptionsError(`--subjects: ${unknown.join(', ')} is none of ${SUBJECT_NAMES.join(', ')}`)
  }
  return SUBJECT_NAMES.filter((name) => asked.includes(name) || (comparing && name === 'tollgate'))
}

function number(name: string, text: string | undefined, fallback: number, min: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (!Number.isFinite(value) || value < min) {
    throw new OptionsError(`--${name} must be a number of at least ${min}`)
  }
  return value
}
