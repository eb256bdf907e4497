import { z } from 'zod'
import { ERRORS, type ErrorCode, type ErrorRow } from '../kernel/errors.ts'
import { headerNames } from '../kernel/header-names.ts'
import { VERSION } from '../kernel/version.ts'
import { errorType } from '../providers/surfaces.ts'
import { defineRoute, type Management, ONCE_HEADER, type OwnReply, type Route, replyJson } from './route.ts'
import { SESSION_COOKIE } from './session.ts'

type JsonObject = Record<string, unknown>

export interface OpenApiOptions {
  /** The version of the package. */
  readonly version: string
  /** Sets the names of the headers and the beginning of keys. */
  readonly servicePrefix: string
}

/** The endpoints of the service itself as an OpenAPI 3.1 document, made from the schemas that the routes check and answer. */
export function openApiDocument(
  routes: readonly Route[],
  { version, servicePrefix }: OpenApiOptions,
): JsonObject {
  const components = new Components(headerNames(servicePrefix).requestId)
  const paths: Record<string, JsonObject> = {}
  for (const route of routes) {
    const operation = describeOperation(route, components)
    paths[route.template] = { ...paths[route.template], [route.method.toLowerCase()]: operation }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate management API',
      version,
      description: ABOUT,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    paths,
    components: {
      schemas: { ...components.schemas, error: errorSchema(routes) },
      responses: components.responses,
      parameters: { idempotency_key: IDEMPOTENCY_KEY },
      headers: { request_id: REQUEST_ID, retry_after: RETRY_AFTER, idempotent_replayed: REPLAYED },
      securitySchemes: {
        admin_key: {
          type: 'http',
          scheme: 'bearer',
          description: `An admin key (\`${servicePrefix}_admin_…\`): manages keys and sees the whole account.`,
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: SESSION_COOKIE,
          description:
            'A session of the dashboard. Anything but GET and HEAD needs its token as the header `x-csrf-token` too.',
        },
        api_key: {
          type: 'http',
          scheme: 'bearer',
          description: `An API key (\`${servicePrefix}_live_…\`): calls models and sees what is its own.`,
        },
      },
    },
  }
}

const ABOUT = `The endpoints of the gateway itself. Model calls are not among them: they are the provider's own.

Keys are sent as \`Authorization: Bearer <key>\`; the headers \`x-api-key\` and \`api-key\` are read too.
Amounts of money are JSON numbers in US dollars with at most nine decimals. Instants are ISO 8601 in UTC.
Fields and parameters that an endpoint does not have are refused, never ignored.
HEAD is answered like GET, without the body; only exports have no HEAD.`

const IDEMPOTENCY_KEY = {
  name: ONCE_HEADER,
  in: 'header',
  required: false,
  description:
    'A name for this request, made up by its sender. The same request again under the same name is not carried ' +
    'out a second time; another request under it is answered with 409.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]*$' },
} as const

const REQUEST_ID = {
  description: 'Names this request in the log of the service.',
  required: true,
  schema: { type: 'string' },
} as const

const RETRY_AFTER = {
  description: 'Seconds after which to try again.',
  schema: { type: 'integer' },
} as const

const REPLAYED = {
  description:
    'The request was carried out before, under the same `Idempotency-Key`; this is what came of it.',
  schema: { type: 'string', const: 'true' },
} as const

const DONE = {
  200: 'Done.',
  201: 'Created.',
  202: 'Begun; it goes on in the background.',
  204: 'Done; there is nothing to say.',
} as const

const SECURITY: Readonly<Record<Route['access'], readonly JsonObject[]>> = {
  admin: [{ admin_key: [] }, { session: [] }],
  any_key: [{ api_key: [] }, { admin_key: [] }, { session: [] }],
  sign_in: [],
}

function describeOperation(route: Route, components: Components): JsonObject {
  const { success } = route
  const parameters = [
    ...pathParameters(route.template),
    ...(route.query === null ? [] : queryParameters(route.query, components)),
    ...(route.repeatable ? [{ $ref: '#/components/parameters/idempotency_key' }] : []),
  ]
  const replayed = { 'idempotent-replayed': { $ref: '#/components/headers/idempotent_replayed' } }
  const otherTypes = Object.entries(success.alsoAs ?? {}).map(([type, description]) => [
    type,
    { schema: { type: 'string', description } },
  ])
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    security: SECURITY[route.access],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === null ? {} : { requestBody: requestBody(route.body, components) }),
    responses: {
      [success.status]: {
        description: DONE[success.status],
        headers: route.repeatable ? { ...components.headers, ...replayed } : components.headers,
        ...(success.schema === null && otherTypes.length === 0
          ? {}
          : {
              content: {
                ...(success.schema === null
                  ? {}
                  : { 'application/json': { schema: components.schema(success.schema, 'output') } }),
                ...Object.fromEntries(otherTypes),
              },
            }),
      },
      ...errorResponses(route, components),
    },
  }
}

function pathParameters(template: string): JsonObject[] {
  const segments = template.split('/')
  return segments.flatMap((segment, i) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1]
    if (name === undefined) return []
    const whose = (segments[i - 1] ?? '').replace(/ies$/, 'y').replace(/s$/, '')
    const description = `The \`${name}\` of the ${whose}.`
    return [{ name, in: 'path', required: true, description, schema: { type: 'string', minLength: 1 } }]
  })
}

/** The members of the schema, each as a parameter of its own. */
function queryParameters(query: z.ZodType, components: Components): JsonObject[] {
  const { properties = {}, required = [] } = components.schema(query, 'input') as {
    readonly properties?: Readonly<Record<string, JsonObject>>
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

/** An absent body is read as `{}`, so a body is required only where `{}` is refused. */
function requestBody(body: z.ZodType, components: Components): JsonObject {
  return {
    required: !body.safeParse({}).success,
    content: { 'application/json': { schema: components.schema(body, 'input') } },
  }
}

/** Parts of the document that are told once and referred to: schemas with an id, and error answers. */
class Components {
  readonly schemas: Record<string, JsonObject> = {}
  readonly responses: Record<string, JsonObject> = {}
  /** The headers of every answer. */
  readonly headers: JsonObject

  constructor(requestIdHeader: string) {
    this.headers = { [requestIdHeader]: { $ref: '#/components/headers/request_id' } }
  }

  /** The schema as a client sends (`input`) or reads (`output`) it; the two differ where a field is transformed. */
  schema(schema: z.ZodType, io: 'input' | 'output'): JsonObject {
    // Inside another object a schema with an id becomes a reference; by itself it would be written out.
    const { properties, $defs } = toPlainJson(
      z.toJSONSchema(z.object({ wanted: schema }), {
        target: 'draft-2020-12',
        io,
        // Fields that zod cannot describe, such as money, have their schema in their metadata.
        unrepresentable: 'any',
        override({ zodSchema, jsonSchema }) {
          shortenDatePattern(jsonSchema)
          // zod leaves out the defaults of transformed fields, for a default may have another type than the input.
          const { def } = zodSchema._zod
          if (def.type === 'default' && isScalar(def.defaultValue)) jsonSchema.default = def.defaultValue
        },
      }),
    )
    for (const [id, found] of Object.entries($defs ?? {})) {
      const known = this.schemas[id]
      if (known !== undefined && JSON.stringify(known) !== JSON.stringify(found)) {
        throw new Error(`The schema id ${id} is used for two schemas, or for what is sent and what is read.`)
      }
      this.schemas[id] = found
    }
    return properties.wanted
  }

  /** An answer with one of these errors. Endpoints with the same errors share it. */
  errorResponse(codes: readonly ErrorCode[], name = codes.join('.')): JsonObject {
    const rows: readonly ErrorRow[] = codes.map((code) => ERRORS[code])
    const retryAfter = rows.some((row) => row.retryAfterSeconds !== undefined)
      ? { 'retry-after': { $ref: '#/components/headers/retry_after' } }
      : {}
    const schema = {
      allOf: [{ $ref: '#/components/schemas/error' }],
      properties: { error: { type: 'object', properties: { code: { type: 'string', enum: codes } } } },
      type: 'object',
    }
    this.responses[name] ??= {
      description: codes.map((code) => `\`${code}\`: ${ERRORS[code].meaning}`).join('\n\n'),
      headers: { ...this.headers, ...retryAfter },
      content: { 'application/json': { schema } },
    }
    return { $ref: `#/components/responses/${name}` }
  }
}

interface Described {
  readonly properties: { readonly wanted: JsonObject }
  readonly $defs?: Record<string, JsonObject>
}

/** References point into the document, and "anything else may be there" is said in the usual way. */
function toPlainJson(described: unknown): Described {
  return JSON.parse(JSON.stringify(described), (key, value: unknown) => {
    if (key === '$ref' && typeof value === 'string') {
      return value.replace('#/$defs/', '#/components/schemas/')
    }
    return key === 'additionalProperties' && isEmptyObject(value) ? true : value
  }) as Described
}

/** zod's own pattern for instants has 300 characters; the format says all of it but that instants are in UTC. */
function shortenDatePattern(schema: JsonObject): void {
  if (schema['format'] !== 'date-time' || String(schema['pattern'] ?? '').length < 100) return
  schema['pattern'] = 'Z$'
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

/** The errors that any request to any endpoint can be answered with: bad credentials, and trouble of our own. */
const EVERYWHERE: readonly ErrorCode[] = [
  'bad_request',
  'invalid_api_key',
  'internal_error',
  'store_unavailable',
]

/** The errors that are answered before a route is found, or instead of one. */
const BEFORE_A_ROUTE: readonly ErrorCode[] = [
  'expectation_failed',
  'head_too_large',
  'method_not_allowed',
  'request_timeout',
]

function errorCodesOf(route: Route): readonly ErrorCode[] {
  const codes = new Set([...EVERYWHERE, ...route.errors])
  if (route.access === 'admin') codes.add('admin_key_required')
  if (route.access !== 'sign_in' && route.method !== 'GET') codes.add('csrf_token_required')
  if (route.body !== null) codes.add('body_too_large').add('request_timeout')
  // The `Idempotency-Key` of a request may have been used for another command.
  if (route.repeatable) codes.add('conflict')
  return [...codes].sort()
}

function errorResponses(route: Route, components: Components): JsonObject {
  const byStatus = Map.groupBy(errorCodesOf(route), (code) => ERRORS[code].status)
  const responses: JsonObject = {}
  for (const [status, codes] of [...byStatus].sort(([one], [other]) => one - other)) {
    responses[status] = components.errorResponse(codes)
  }
  responses['default'] = components.errorResponse(BEFORE_A_ROUTE, 'other')
  return responses
}

/** The error object of every refusal. */
function errorSchema(routes: readonly Route[]): JsonObject {
  const codes = [...new Set([...routes.flatMap(errorCodesOf), ...BEFORE_A_ROUTE])].sort()
  return {
    type: 'object',
    properties: {
      error: {
        type: 'object',
        properties: {
          message: { type: 'string', description: 'What is wrong and what to change. For people.' },
          type: { type: 'string', enum: [...new Set(codes.map((code) => errorType('own', code)))].sort() },
          param: { type: ['string', 'null'], description: 'The field or parameter at fault.' },
          code: { type: 'string', enum: codes, description: 'What is wrong. For programs.' },
          details: {
            type: 'object',
            additionalProperties: true,
            description: 'Figures, where there are any.',
          },
        },
        required: ['message', 'type', 'param', 'code'],
        additionalProperties: false,
      },
      request_id: { type: 'string', description: REQUEST_ID.description },
    },
    required: ['error', 'request_id'],
    additionalProperties: false,
  }
}

/**
 * The list of routes is given as a function, because it contains this route. The document is made when it is first asked
 * for, once for each gateway of the process.
 */
export function openApiRoute(routes: () => readonly Route[]): Route {
  const made = new WeakMap<Management, OwnReply>()
  return defineRoute({
    endpoint: 'GET /gateway/openapi.json',
    operationId: 'get_openapi',
    summary: 'This document',
    success: {
      status: 200,
      schema: z
        .looseObject({
          openapi: z.literal('3.1.0'),
          info: z.looseObject({ title: z.string(), version: z.string() }),
          paths: z.record(z.string(), z.looseObject({})),
          components: z.looseObject({}),
        })
        .meta({ id: 'openapi_document', description: 'This document, of the version that serves it.' }),
    },
    async handle(_request, management) {
      const { servicePrefix } = management
      const reply =
        made.get(management) ?? replyJson(200, openApiDocument(routes(), { version: VERSION, servicePrefix }))
      made.set(management, reply)
      return reply
    },
  })
}
