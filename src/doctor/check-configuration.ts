import type { Config, UpstreamConfig } from '../config.ts'
import { type Check, ok, problem, skipped, warning } from './check.ts'
import type { Settings } from './read-settings.ts'

export function checkConfiguration({ problems }: Settings): Check[] {
  if (problems.length === 0) return [ok('configuration', 'all variables and settings are good')]
  return problems.map((text) =>
    problem('configuration', text, 'Mend it and start again: the gateway does not start with it.'),
  )
}

export function checkSurfaces({ config, doubtful }: Settings): Check {
  if (config === null || doubtful.size > 0)
    return skipped('surfaces', 'not looked at before the configuration is good')
  const { messages, chat } = config
  if (messages === null && chat === null) {
    return warning(
      'surfaces',
      'the built-in simulator only: every answer is made up, and its prices are charged',
      'For real use set ANTHROPIC_API_KEY and/or OPENAI_API_KEY, or the URL of a server of your own.',
    )
  }
  const found = `${describe('Messages', messages)}, ${describe('Chat', chat)}`
  const inClear = [messages, chat].find((upstream) => upstream !== null && sendsKeyInClear(upstream))
  if (inClear) {
    return warning(
      'surfaces',
      `${found}; the key goes to ${inClear.url.host} unencrypted`,
      'Use https:// if that host is beyond a network that you trust.',
    )
  }
  return ok('surfaces', found)
}

function describe(label: string, upstream: Config['messages']): string {
  if (upstream === null) return `${label} not configured (answers 503)`
  return `${label} at ${upstream.url.href}${upstream.key === null ? ' without a key' : ''}`
}

function sendsKeyInClear({ url, key }: UpstreamConfig): boolean {
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)
  return key !== null && url.protocol === 'http:' && !isLoopback
}
