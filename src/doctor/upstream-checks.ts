import { type Config, readPepper, type UpstreamConfig } from '../config/read-config.ts'
import { readBook } from '../config/read-pricing.ts'
import { type EgressRules, routeTo } from '../http/egress.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { createSecretSealer, upstreamKeyRecord } from '../keys/secrets.ts'
import { OTHER_MODELS } from '../ledger/prices.ts'
import { findModel, versionAt } from '../pricing/price-book.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { readOwnUpstreams } from '../store/operations/accounts.ts'
import { runOn } from '../store/operations/operation.ts'
import { PRICES } from '../store/operations/prices.ts'
import { type Check, ok, problem, type Result, skipped, warning } from './check.ts'
import { readModelList } from './model-list.ts'

/** Codes of our own errors, whose messages say more. */
const OWN_CODE = /^(?:UPSTREAM|PROXY)_/

/** What an upstream answers to the question for its models. */
export interface Probe {
  readonly surface: Surface
  readonly result: Result
  /** Null: the list is not known. */
  readonly models: readonly string[] | null
}

type Installed = Pick<Config, Surface | 'egress'>

/** The installation's upstreams, one after the other: a proxy must not see more than one connection of a probe. */
export async function probeUpstreams(config: Installed, stop?: AbortSignal): Promise<readonly Probe[]> {
  const probes: Probe[] = []
  for (const surface of SURFACE_NAMES) {
    const upstream = config[surface]
    const { url, key, providerKey } = SURFACES[surface].upstream.variables
    const settings = { subject: '', url, key: `${key} or ${providerKey}` }
    if (upstream !== null) probes.push(await probeUpstream(surface, upstream, config.egress, settings, stop))
  }
  return probes
}

/** The keys of the installation, then those of accounts. */
export const checkAllKeys: Check = async (context) => {
  const installed = (await probeUpstreams(context.config)).map(({ result }) => result)
  const all = [...installed, ...[await checkAccountKeys(context)].flat()]
  return all.length === 0 ? skipped('no upstream is configured') : all
}

const checkAccountKeys: Check = async ({ config, snapshot }) => {
  const opened = await snapshot.catch(() => null)
  const accounts = opened === null ? [] : await runOn(opened.query, readOwnUpstreams())
  if (accounts.length === 0) return []
  const pepper = readPepper(config)
  if (pepper === null) return skipped('the upstream keys of accounts cannot be decrypted without the pepper')
  const sealer = createSecretSealer(pepper, 'upstream keys')
  const all: Result[] = []
  for (const { id, name, upstreams } of accounts)
    for (const surface of SURFACE_NAMES) {
      const own = upstreams[surface]
      if (own === null) continue
      const subject = `${id} (${name}): `
      const field = `upstreams.${surface}`
      const { url, sealedKey } = own
      try {
        const sealed = sealedKey === null ? null : Buffer.from(sealedKey, 'base64')
        const key = sealed && sealer.open(sealed, upstreamKeyRecord(id, surface, url))
        const settings = { subject, url: `${field}.url`, key: `${field}.key` }
        const upstream = { url: new URL(url), key }
        all.push((await probeUpstream(surface, upstream, config.egress, settings)).result)
      } catch {
        const found = `${subject}the key for ${surface} cannot be decrypted`
        all.push(problem(found, `Restore the pepper, or set ${field} again.`))
      }
    }
  return all
}

/** `subject`: the account that owns the upstream. `url`, `key`: the names of the settings to correct. */
async function probeUpstream(
  surface: Surface,
  upstream: UpstreamConfig,
  egress: EgressRules,
  settings: SettingNames,
  stop?: AbortSignal,
): Promise<Probe> {
  const answer = await readModelList(surface, upstream, egress, stop).catch((error: Error) => error)
  if (!(answer instanceof Error))
    return { surface, result: judgeStatus(answer.status, upstream, settings), models: answer.models }
  const { code = '', message } = answer as NodeJS.ErrnoException
  const { proxy } = routeTo(upstream.url, egress)
  const way = proxy === null ? 'this machine' : `the proxy ${proxy.host}:${proxy.port} (HTTPS_PROXY)`
  const result = problem(
    `${settings.subject + upstream.url.host} cannot be reached: ${/^[A-Z_]+$/.test(code) && !OWN_CODE.test(code) ? code : message}`,
    `Check ${settings.url}, and whether ${way} can connect to that host.`,
  )
  return { surface, result, models: null }
}

/** `subject`: the account that owns the upstream. `url`, `key`: the names of the settings to correct. */
type SettingNames = Readonly<Record<'subject' | 'url' | 'key', string>>

function judgeStatus(
  status: number,
  { url, key }: UpstreamConfig,
  { subject, url: urlSetting, key: keySetting }: SettingNames,
): Result {
  const host = subject + url.host
  if (status === 200) return ok(key === null ? `${host} answers without a key` : `${host} accepts the key`)
  if (status === 401 || status === 403)
    return key === null
      ? problem(`${host} requires a key (${status}), but none is set`, `Set ${keySetting}.`)
      : problem(
          `${host} refuses the key (${status})`,
          `Check ${keySetting}; a restricted key must be allowed to list models.`,
        )
  return warning(`${host} answers ${status} to GET /v1/models`, `Check that ${urlSetting} is its base URL.`)
}

const WEEK_MS = 7 * 86_400_000
const NAMES_SHOWN_MAX = 20

/** Models that were asked for in the last week and have no price now. Without a price, capped keys are refused. */
export const checkUnpricedModels: Check = async ({ config, nowMs, snapshot }) => {
  const opened = await snapshot.catch(() => undefined)
  if (opened === undefined) return skipped('the database cannot be read')
  if (opened === null) return skipped('there are no calls yet')
  const asked = await runOn(opened.query, PRICES.reads.listUnpricedModels(nowMs - WEEK_MS))
  const version = versionAt(
    await readBook(config, await runOn(opened.query, PRICES.brief.readPrices())),
    nowMs,
  )
  const isMissing = (model: string) => model !== OTHER_MODELS && findModel(version, model) === null
  const missing = [...new Set(asked.map(({ model }) => model).filter(isMissing))].sort()
  if (missing.length === 0) return ok(`all models of the last week have a price in ${version.id}`)
  const more = missing.length > NAMES_SHOWN_MAX ? ` and ${missing.length - NAMES_SHOWN_MAX} more` : ''
  return warning(
    `models of the last week without a price: ${missing.slice(0, NAMES_SHOWN_MAX).join(', ')}${more}`,
    'Set their prices with `tollgate prices set`; `tollgate prices missing` counts their calls (docs/PRICES.md).',
  )
}
