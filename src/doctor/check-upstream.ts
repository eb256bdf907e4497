import type { Environment } from '../config.ts'
import type { Surface } from '../providers/surface.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { counted, inMs, inTime } from './amounts.ts'
import type { Stage, Timings, UpstreamAnswer } from './ask-upstream.ts'
import { type Check, type CheckName, ok, problem, warning } from './check.ts'

/** What is asked, and what of the configuration decided it. */
export interface Asked {
  readonly surface: Surface
  readonly url: URL
  /** The variable that the key came from. Null: there is no key. */
  readonly keyVariable: string | null
  readonly deadlineMs: number
}

function variablesOf(surface: Surface) {
  return SURFACES[surface].upstream.variables
}

export function upstreamCheckName(surface: Surface): CheckName {
  return surface === 'messages' ? 'upstream_messages' : 'upstream_chat'
}

export function keyVariableOf(surface: Surface, environment: Environment): string | null {
  const { key, providerKey } = variablesOf(surface)
  return [key, providerKey].find((name) => (environment[name] ?? '') !== '') ?? null
}

export function checkUpstream(asked: Asked, answer: UpstreamAnswer): Check {
  if (answer.kind === 'late') return judgeLate(asked, answer.stage)
  if (answer.kind === 'failed') return judgeFailure(asked, answer)
  return judgeStatus(asked, answer)
}

type Answered = Extract<UpstreamAnswer, { kind: 'answered' }>

function judgeStatus(asked: Asked, { status, location, models, timings }: Answered): Check {
  const name = upstreamCheckName(asked.surface)
  const { host } = asked.url
  const { url: urlVariable, key, providerKey } = variablesOf(asked.surface)
  const took = describeTimings(timings)
  if (status === 200 && models !== null) {
    const accepted = asked.keyVariable === null ? 'no key set' : `the key in ${asked.keyVariable} is accepted`
    return ok(name, `${host} lists ${counted(models.length, 'model')}, ${accepted} (${took})`)
  }
  if (status === 401 || status === 403) {
    return asked.keyVariable === null
      ? problem(name, `${host} asks for a key (${status}), and none is set`, `Set ${key} or ${providerKey}.`)
      : problem(
          name,
          `the provider refuses the key in ${asked.keyVariable} (${status} from ${host})`,
          'See that it is whole, in force and of this provider; a restricted one must be allowed to list models.',
        )
  }
  if (status >= 300 && status < 400) {
    return problem(
      name,
      `${host} redirects (${status}) to ${describeLocation(location, asked.url)}`,
      `Set ${urlVariable} to where it leads: the gateway does not follow, clients would get the redirect.`,
    )
  }
  if (status === 429 || status === 529) {
    return warning(
      name,
      `${host} is reachable and asks to wait (${status})`,
      'Try again later; if it stays so, look at the limits of the provider account.',
    )
  }
  if (status >= 500) {
    return problem(
      name,
      `${host} is reachable and fails (${status})`,
      `Look at the provider's status page, or at whatever stands between: ${urlVariable} leads to it.`,
    )
  }
  return warning(
    name,
    `${host} answers ${status} and gives no list of models (${took})`,
    `A local server may have none. If it should have one, see that ${urlVariable} is its base URL.`,
  )
}

const LATE: Readonly<Record<Stage, string>> = {
  lookup: 'was not found by name',
  connect: 'took no connection',
  tls: 'did not finish the TLS handshake',
  answer: 'took the connection and gave no answer',
  body: 'did not finish its answer',
}

function judgeLate(asked: Asked, stage: Stage): Check {
  const todo =
    stage === 'answer' || stage === 'body'
      ? `See that ${variablesOf(asked.surface).url} leads to the right server and that it is not stuck.`
      : 'See that this machine may reach it: name servers, firewall, routes. The gateway uses no proxy.'
  const found = `${asked.url.host} ${LATE[stage]} within ${inTime(asked.deadlineMs)}`
  return problem(upstreamCheckName(asked.surface), found, todo)
}

function judgeFailure(asked: Asked, failed: Extract<UpstreamAnswer, { kind: 'failed' }>): Check {
  const name = upstreamCheckName(asked.surface)
  const { host } = asked.url
  const { url: urlVariable } = variablesOf(asked.surface)
  const { code, stage, reason } = failed
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return problem(
        name,
        `there is no address for ${host} (${code})`,
        `Look for a typo in ${urlVariable}, and see that this machine's name server answers.`,
      )
    case 'ECONNREFUSED':
      return problem(
        name,
        `${host} refuses the connection`,
        `Start the server there, or set ${urlVariable} to where it listens.`,
      )
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return problem(name, `there is no way to ${host} (${code})`, 'Look at the network of this machine.')
  }
  if (stage === 'tls') {
    return problem(
      name,
      `no TLS with ${host}: ${code === '' ? reason : code}`,
      'If it has a certificate of your own authority, name that in NODE_EXTRA_CA_CERTS; if it speaks no TLS, use http://.',
    )
  }
  return problem(
    name,
    `${host} broke off (${code === '' ? reason : code})`,
    `See that ${urlVariable} leads to an HTTP server that works.`,
  )
}

/** Without the query, which may hold what is not for a terminal. */
function describeLocation(location: string | null, base: URL): string {
  if (location === null || !URL.canParse(location, base.href)) return 'nowhere'
  const { origin, pathname } = new URL(location, base)
  return `${origin}${pathname}`.slice(0, 200)
}

function describeTimings(timings: Timings): string {
  const labels = [
    ['lookup', 'DNS'],
    ['connect', 'TCP'],
    ['tls', 'TLS'],
    ['answer', 'answer'],
  ] as const
  return labels
    .flatMap(([stage, label]) => (timings[stage] === undefined ? [] : [`${label} ${inMs(timings[stage])}`]))
    .join(', ')
}
