import { z } from 'zod'

/**
 * Creates an account for each team of a LiteLLM proxy, and a key for each of its virtual keys:
 *
 *   LITELLM_URL=… LITELLM_MASTER_KEY=… TOLLGATE_URL=… TOLLGATE_ADMIN_KEY=… node scripts/import-litellm.ts [--dry-run]
 *
 * LiteLLM stores only hashes of its keys, so each key gets a new secret. They are printed to standard output, one line of
 * JSON for each new key. Remarks go to standard error. What an earlier run created is left alone.
 */

const optional = <T extends z.ZodType>(type: T) => type.nullish().transform((value) => value ?? null)

/** What a team and a virtual key have in common, of what is read here. */
const LIMITS = {
  max_budget: optional(z.number()),
  budget_duration: optional(z.string()),
  spend: optional(z.number()),
  blocked: optional(z.boolean()),
  models: optional(z.array(z.string())),
  tpm_limit: optional(z.number()),
}

const TEAM = z.object({ ...LIMITS, team_id: z.string(), team_alias: optional(z.string()) })

const KEY = z.object({
  ...LIMITS,
  token: z.string(),
  key_name: optional(z.string()),
  key_alias: optional(z.string()),
  expires: optional(z.string()),
  team_id: optional(z.string()),
  user_id: optional(z.string()),
  rpm_limit: optional(z.number()),
  max_parallel_requests: optional(z.number()),
  metadata: optional(z.record(z.string(), z.unknown())),
})

const KEY_PAGE = z.object({ keys: z.array(KEY), total_pages: z.number() })

type Team = z.infer<typeof TEAM>
type Key = z.infer<typeof KEY>
type Limits = Pick<Key, keyof typeof LIMITS>
type Fields = Readonly<Record<string, unknown>>

const DAYS = { s: 1 / 86_400, m: 1 / 1_440, h: 1 / 24, d: 1, w: 7, mo: 30 } as const
const NANOS = 1e9

/** LiteLLM counts in floating point; Tollgate takes nine decimals. */
const usd = (amount: number) => Math.round(Math.max(amount, 0) * NANOS) / NANOS

/** A period that Tollgate lacks becomes a day or a month, with the same amount for each day. */
function budgetOf(
  { max_budget: cap, budget_duration: period, spend }: Limits,
  remark: Remark,
): Record<string, unknown> {
  if (cap === null) return {}
  if (period === null) {
    remark('its budget never resets: the rest of it is a monthly budget now')
    return { monthly_budget_usd: usd(cap - (spend ?? 0)) }
  }
  const [, count, unit] = /^([1-9]\d*)(mo|[smhdw])$/.exec(period) ?? []
  if (unit === undefined) throw new Error(`budget_duration "${period}" is unknown`)
  const days = Number(count) * DAYS[unit as keyof typeof DAYS]
  const [amount, each] = days > 1 ? [usd((cap * DAYS.mo) / days), 'month'] : [usd(cap / days), 'day']
  if (days !== 1 && days !== 30)
    remark(`its budget of ${cap} USD for ${period} is ${amount} USD a ${each} now`)
  return days > 1 ? { monthly_budget_usd: amount } : { daily_budget_usd: amount }
}

const ALL_MODELS = ['*', 'all-proxy-models', 'all-team-models']
const isAll = (models: readonly string[]) =>
  models.length === 0 || models.some((model) => ALL_MODELS.includes(model))
const FAMILIES: Readonly<Record<string, string>> = { 'anthropic/*': 'claude-*', 'openai/*': 'gpt-*' }

/** A key for all models gets those of its team, because LiteLLM checks both lists. */
function modelsOf(own: readonly string[], ofTeam: readonly string[]): Fields {
  const models = isAll(own) ? ofTeam : own
  if (isAll(models)) return {}
  return {
    allowed_models: models.map((model) => FAMILIES[model] ?? model.replace(/^(anthropic|openai)\//, '')),
  }
}

type Remark = (text: string) => void

function fieldsOf(key: Key, teamModels: readonly string[], remark: Remark): Fields {
  if (key.tpm_limit !== null) remark('tpm_limit has no counterpart')
  if (key.max_parallel_requests !== null) remark('max_parallel_requests has no counterpart')
  const own = Object.entries(key.metadata ?? {}).filter(([, value]) => typeof value === 'string')
  const user = key.user_id === null ? [] : [['litellm_user', key.user_id] as const]
  return {
    name: nameOf(key),
    metadata: Object.fromEntries([['litellm_key', key.token], ...user, ...own].slice(0, 16)),
    ...(key.rpm_limit === null ? {} : { requests_per_minute: key.rpm_limit }),
    ...(key.expires === null ? {} : { expires_at: new Date(key.expires).toISOString() }),
    ...budgetOf(key, remark),
    ...modelsOf(key.models ?? [], teamModels),
  }
}

const nameOf = (key: Key) => (key.key_alias ?? key.key_name ?? key.token).slice(0, 120)

const isOver = ({ blocked, expires }: Key) =>
  blocked === true || (expires !== null && Date.parse(expires) <= Date.now())

async function ask(
  base: string,
  key: string,
  path: string,
  body?: Fields,
  method = body === undefined ? 'GET' : 'POST',
): Promise<Response> {
  const [url, secret] = [base, key].map((name) => process.env[name])
  if (!url || !secret) throw new Error(`Set ${base} and ${key}.`)
  const response = await fetch(url.replace(/\/$/, '') + path, {
    method,
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  }).catch(({ message, cause = message }) => {
    throw new Error(`${url} does not answer (${cause.code ?? cause}). Start it, or correct ${base}.`)
  })
  if (response.ok || (method === 'PATCH' && response.status === 404)) return response
  throw new Error(`${path} answers ${response.status}: ${await response.text()}`)
}

const askLiteLlm = async (path: string) => (await ask('LITELLM_URL', 'LITELLM_MASTER_KEY', path)).json()
const askTollgate = async (path: string, body?: Fields) =>
  (await ask('TOLLGATE_URL', 'TOLLGATE_ADMIN_KEY', path, body)).json()

/** Has the fields checked: the gateway refuses wrong ones before it finds that there is no key with this id. */
async function checkKey({ metadata: _, ...fields }: Fields): Promise<void> {
  await ask('TOLLGATE_URL', 'TOLLGATE_ADMIN_KEY', `/v1/keys/key_${'0'.repeat(26)}`, fields, 'PATCH')
}

async function readKeys(): Promise<Key[]> {
  const keys: Key[] = []
  for (let page = 1, pages = 1; page <= pages; page += 1) {
    const path = `/key/list?return_full_object=true&include_team_keys=true&size=100&page=${page}`
    const answer = KEY_PAGE.parse(await askLiteLlm(path))
    keys.push(...answer.keys)
    pages = answer.total_pages
  }
  return keys
}

const LIST = z.object({ data: z.array(z.object({ id: z.string() })) })
const CREATED = z.object({ id: z.string(), key: z.string().optional() })

/** What an earlier run created for this id, or null. */
async function find(path: string, name: string, id: string): Promise<string | null> {
  const separator = path.includes('?') ? '&' : '?'
  const list = await askTollgate(
    `${path}${separator}limit=1&search=${encodeURIComponent(`metadata.${name}:${id}`)}`,
  )
  return LIST.parse(list).data[0]?.id ?? null
}

const isDry = process.argv.includes('--dry-run')
const say = (text: string) => process.stderr.write(`${text}\n`)

/** The id of the account of a team. In a dry run, new accounts have none. */
async function accountOf(team: Team): Promise<string | null> {
  const known = await find('/gateway/v1/accounts', 'litellm_team', team.team_id)
  if (known !== null) return known
  const name = team.team_alias ?? team.team_id
  const { daily_budget_usd: daily, ...limits } = budgetOf(team, (text) => say(`${name}: ${text}`))
  if (daily !== undefined) {
    limits['monthly_budget_usd'] = usd(Number(daily) * DAYS.mo)
    say(
      `${name}: accounts have no daily budget: ${daily} USD a day are ${limits['monthly_budget_usd']} USD a month`,
    )
  }
  const fields = { name, metadata: { litellm_team: team.team_id }, ...limits }
  say(`account ${JSON.stringify(fields)}`)
  return isDry ? null : CREATED.parse(await askTollgate('/gateway/v1/accounts', fields)).id
}

async function main(): Promise<void> {
  const teams = z.array(TEAM).parse(await askLiteLlm('/team/list'))
  const accounts = new Map<string, string | null>()
  for (const team of teams) accounts.set(team.team_id, await accountOf(team))

  for (const key of await readKeys()) {
    const name = nameOf(key)
    const account = key.team_id === null ? 'default' : (accounts.get(key.team_id) ?? null)
    try {
      if (isOver(key)) say(`${name}: blocked or expired, left out`)
      else if (
        account !== null &&
        (await find(`/v1/keys?account=${account}`, 'litellm_key', key.token)) !== null
      )
        say(`${name}: is here already`)
      else {
        const teamModels = teams.find(({ team_id: id }) => id === key.team_id)?.models ?? []
        const fields = fieldsOf(key, teamModels, (text) => say(`${name}: ${text}`))
        if (isDry || account === null) {
          await checkKey(fields)
          say(`key ${JSON.stringify(fields)}`)
        } else {
          const created = CREATED.parse(await askTollgate(`/v1/keys?account=${account}`, fields))
          process.stdout.write(`${JSON.stringify({ name, was: key.key_name, account, ...created })}\n`)
        }
      }
    } catch (error) {
      say(`${name}: NOT CREATED: ${error instanceof Error ? error.message : String(error)}`)
      process.exitCode = 1
    }
  }
}

await main().catch(({ message }: Error) => {
  say(message)
  process.exitCode = 1
})
