import { z } from 'zod'
import { EVENT_PAYLOADS } from '../api/event-payload.ts'
import { errorSchema } from '../api/fields.ts'
import { ERRORS, type ErrorCode } from '../kernel/errors.ts'
import { headerNames } from '../kernel/header-names.ts'
import { VERSION } from '../kernel/runtime.ts'
import {
  defineRoute,
  IDEMPOTENCY_HEADER,
  type OwnReply,
  type Route,
  type RouteParts,
  replyJson,
} from './route.ts'
import { SESSION_COOKIE } from './session.ts'

type JsonNode = Record<string, unknown>

export function openApiDocument(
  routes: readonly Route[],
  { version, servicePrefix }: { readonly version: string; readonly servicePrefix: string },
): JsonNode {
  const requestId = headerNames(servicePrefix).requestId
  const schemas = new Schemas()
  const paths: Record<string, JsonNode> = {}
  for (const route of routes) {
    const operation = describeOperation(route, schemas, requestId)
    paths[route.template] = { ...paths[route.template], [route.method.toLowerCase()]: operation }
  }
  const error = schemas.of(errorSchema, 'output')
  const tags = [...new Set(routes.map(({ template }) => tagOf(template)))]
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate management API',
      version,
      description: ABOUT,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [SERVER],
    tags: tags.map((name) => ({ name })),
    paths,
    webhooks: { event: { post: describeWebhook(schemas) } },
    components: {
      schemas: schemas.named,
      responses: {
        error: {
          description: `A refusal. \`error.code\` is one of:\n\n${errorList()}`,
          headers: { [requestId]: REQUEST_ID, 'retry-after': RETRY_AFTER },
          content: { 'application/json': { schema: error } },
        },
      },
      parameters: { idempotency_key: IDEMPOTENCY_KEY, account: ACCOUNT },
      securitySchemes: {
        admin_key: bearer(`An admin key (\`${servicePrefix}_admin_…\`): acts as its role permits.`),
        api_key: bearer(`An API key (\`${servicePrefix}_live_…\`): sees its own record, usage and calls.`),
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: SESSION_COOKIE,
          description: 'A dashboard session. It counts only on requests from the gateway’s own pages.',
        },
      },
    },
  }
}

const bearer = (description: string) => ({ type: 'http', scheme: 'bearer', description })

const SERVER = {
  url: '{gateway}',
  description: 'Your gateway.',
  variables: { gateway: { default: 'http://127.0.0.1:8787' } },
} as const

/** The noun of the path: `/v1/keys/{id}/requests` is about keys. */
function tagOf(template: string): string {
  return /^\/(?:gateway\/)?v1\/([\w-]+)/.exec(template)?.[1] ?? 'gateway'
}

/** `oneOf` with a discriminator: generators make a union type of it, which `type` narrows. */
function describeWebhook(schemas: Schemas): JsonNode {
  const payloads = [...EVENT_PAYLOADS].map(
    ([type, payload]) => [type, schemas.of(payload, 'output')] as const,
  )
  const mapping = Object.fromEntries(payloads.map(([type, { $ref }]) => [type, $ref]))
  const discriminator = { propertyName: 'type', mapping }
  return {
    operationId: 'receive_event',
    summary: 'An event that the gateway sends to a webhook',
    description:
      'Signed as Standard Webhooks specifies. With `"format": "slack"`, the message is `{"text": "…"}` instead. New types of events and ' +
      'new members may be added.',
    tags: ['webhooks'],
    requestBody: {
      required: true,
      content: {
        'application/json': { schema: { oneOf: payloads.map(([, schema]) => schema), discriminator } },
      },
    },
    responses: {
      '2XX': { description: 'Received. Any other status, and silence for 15 seconds, is tried again.' },
    },
  }
}

const ABOUT = `The endpoints of the gateway itself. Model calls are not among them: they are the provider's own.

Keys are sent as \`Authorization: Bearer <key>\`; the headers \`x-api-key\` and \`api-key\` work too.
Amounts of money are JSON numbers in US dollars with at most nine decimals. Instants are ISO 8601 in UTC.
Fields and parameters that an endpoint does not have are refused, never ignored.
HEAD is answered like GET, without the body; exports have no HEAD.`

const IDEMPOTENCY_KEY = {
  name: IDEMPOTENCY_HEADER,
  in: 'header',
  required: false,
  description:
    'A key of your choice. For 24 hours the same request with the same key is not executed ' +
    'again; a different request with it is 409 `conflict`.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]*$' },
} as const

const ACCOUNT = {
  name: 'account',
  in: 'query',
  required: false,
  description:
    'For operators: the account to act in, `default` if absent. An id in the path is found in any account. Lists and usage ' +
    'accept `*` for all accounts. Other keys act in their own account.',
  schema: { type: 'string', minLength: 1 },
} as const

const REQUEST_ID = {
  description: 'The id of this request.',
  required: true,
  schema: { type: 'string' },
} as const
const RETRY_AFTER = { description: 'Seconds after which to retry.', schema: { type: 'integer' } } as const
const REPLAYED = {
  description: 'The result of an earlier request with the same `Idempotency-Key`.',
  schema: { type: 'string', const: 'true' },
} as const

const DONE = { 200: 'Done.', 201: 'Created.', 202: 'Accepted.', 204: 'Done, without a body.' } as const

function securityOf({ requiredRole: required }: Route): readonly JsonNode[] {
  if (required === 'anyone') return []
  return [...(required === 'api_key' ? [{ api_key: [] }] : []), { admin_key: [] }, { session: [] }]
}

function errorList(): string {
  const codes = Object.keys(ERRORS) as ErrorCode[]
  return codes.map((code) => `- \`${code}\` (${ERRORS[code].status}): ${ERRORS[code].meaning}`).join('\n')
}

function describeOperation(route: Route, schemas: Schemas, requestId: string): JsonNode {
  const { operationId, summary, description, status, answer, alsoAs, mayBeEmpty, repeatable, account } = route
  const parameters = [
    ...pathParameters(route),
    ...(account === 'none' ? [] : [{ $ref: '#/components/parameters/account' }]),
    ...(route.query === null ? [] : queryParameters(route.query, schemas)),
    ...(repeatable ? [{ $ref: '#/components/parameters/idempotency_key' }] : []),
  ]
  const content = {
    ...(answer === null ? {} : { 'application/json': { schema: schemas.of(answer, 'output') } }),
    ...Object.fromEntries(
      Object.entries(alsoAs).map(([type, text]) => [type, { schema: { type: 'string', description: text } }]),
    ),
  }
  const headers = { [requestId]: REQUEST_ID, ...(repeatable ? { 'idempotent-replayed': REPLAYED } : {}) }
  return {
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [tagOf(route.template)],
    security: securityOf(route),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === null ? {} : { requestBody: requestBody(route, route.body, schemas) }),
    responses: {
      [status]: {
        description: DONE[status],
        headers,
        ...(Object.keys(content).length === 0 ? {} : { content }),
      },
      ...(mayBeEmpty ? { 204: { description: DONE[204], headers } } : {}),
      default: { $ref: '#/components/responses/error' },
    },
  }
}

function pathParameters({ template, nouns }: Route): JsonNode[] {
  const schema = { type: 'string', minLength: 1 }
  return Array.from(template.matchAll(/\{(\w+)\}/g), ([, name], at) => {
    return { name, in: 'path', required: true, description: `The \`${name}\` of the ${nouns[at]}.`, schema }
  })
}

function queryParameters(query: z.ZodType, schemas: Schemas): JsonNode[] {
  const { properties = {}, required = [] } = schemas.of(query, 'input') as {
    readonly properties?: Readonly<Record<string, JsonNode>>
    readonly required?: readonly string[]
  }
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema,
  }))
}

/** The description of the body. An absent body counts as `{}`, so a body is required only if `{}` is refused. */
function requestBody({ operationId }: Route, body: z.ZodType, schemas: Schemas): JsonNode {
  const example = EXAMPLES[operationId]
  return {
    required: !body.safeParse({}).success,
    content: {
      'application/json': {
        schema: schemas.of(body, 'input'),
        ...(example === undefined ? {} : { example }),
      },
    },
  }
}

/** A body of each endpoint that has one. A test checks each against its schema. */
export const EXAMPLES: Readonly<Record<string, object>> = {
  create_key: { name: 'checkout', monthly_budget_usd: 50, metadata: { team: 'web' } },
  update_key: { monthly_budget_usd: 200, expires_at: null },
  rotate_key: { old_expires_in_seconds: 86_400 },
  add_credit: { amount_usd: 100, reason: 'Invoice 2026-118' },
  create_account: { name: 'Team Search', monthly_budget_usd: 500 },
  update_account: { credit_enforced: true },
  create_admin_key: { name: 'finance', role: 'viewer' },
  create_webhook: { url: 'https://example.com/hooks/tollgate', events: ['key.budget.threshold'] },
  update_webhook: { enabled: true },
  update_person: { monthly_budget_usd: 80 },
  move_person: { account: 'acct_01JCN1ZV5M3T9Q8W7E6R5T4Y3X' },
  decide_device: { user_code: 'BCDF-GHJK', approve: true },
  open_session: { admin_key: 'YOUR-ADMIN-KEY' },
  set_price: { rates: { standard: { input: '1.25', output: '10' } } },
  push_prices: { revision: '2026-11-19', base: '2026-11-01', changes: [] },
  update_members: { monthly_budget_usd: 50, keys_max: 5 },
}

/** The schemas with an id. Each is written once; other schemas refer to it. */
class Schemas {
  readonly named: Record<string, JsonNode> = {}

  /** The schema of a request (`input`) or an answer (`output`). They differ if a field is transformed. */
  of(schema: z.ZodType, io: 'input' | 'output'): JsonNode {
    // Wrapped in an object, a schema with an id becomes a reference instead of being written out.
    const { properties, $defs } = toPlainJson(
      z.toJSONSchema(z.object({ wanted: schema }), {
        target: 'draft-2020-12',
        io,
        // Fields that zod cannot describe, such as money, have their schema in their metadata.
        unrepresentable: 'any',
        override({ zodSchema, jsonSchema }) {
          // zod leaves out the defaults of transformed fields.
          const { def } = zodSchema._zod
          if (def.type === 'default' && typeof def.defaultValue !== 'object')
            jsonSchema.default = def.defaultValue as string | number
        },
      }),
    )
    Object.assign(this.named, $defs)
    return properties.wanted
  }
}

interface Described {
  readonly properties: { readonly wanted: JsonNode }
  readonly $defs?: Record<string, JsonNode>
}

/** Points references into the document, and writes the empty schema, which permits any value, as `true`. */
function toPlainJson(described: unknown): Described {
  return JSON.parse(JSON.stringify(described), (key, value: unknown) => {
    if (key === '$ref' && typeof value === 'string') return value.replace('#/$defs/', '#/components/schemas/')
    const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0
    return key === 'additionalProperties' && isEmpty ? true : value
  }) as Described
}

/** The route of the document. `routes` is a function, because the list contains this route too. */
export function openApiRoute(routes: () => readonly Route[]): RouteParts<unknown, unknown> {
  const replies = new Map<string, OwnReply>()
  return defineRoute({
    summary: 'This document',
    async handle(_request, { servicePrefix }) {
      const reply =
        replies.get(servicePrefix) ??
        replyJson(200, openApiDocument(routes(), { version: VERSION, servicePrefix }))
      replies.set(servicePrefix, reply)
      return reply
    },
  })
}
