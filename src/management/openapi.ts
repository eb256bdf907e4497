import type { z } from 'zod'
import type { ErrorCode } from '../kernel/errors.ts'
import { headerNames } from '../kernel/header-names.ts'
import { createErrorBook, type ErrorBook, errorSchema, isToldWhenToRetry } from './openapi-errors.ts'
import { createSchemaBook, type JsonObject, type SchemaBook } from './openapi-schemas.ts'
import type { Route } from './route.ts'

export interface OpenApiOptions {
  /** Of the package. */
  readonly version: string
  /** Sets the names of the headers and the beginning of keys. */
  readonly servicePrefix: string
}

/** The endpoints of the service itself as an OpenAPI 3.1 document, made from what the routes check and answer. */
export function openApiDocument(routes: readonly Route[], options: OpenApiOptions): JsonObject {
  const { requestId } = headerNames(options.servicePrefix)
  const always = { [requestId]: { $ref: '#/components/headers/request_id' } }
  const headersOf = (codes: readonly ErrorCode[]) =>
    isToldWhenToRetry(codes)
      ? { ...always, 'retry-after': { $ref: '#/components/headers/retry_after' } }
      : always
  const schemas = createSchemaBook()
  const errors = createErrorBook(headersOf)
  const paths: Record<string, JsonObject> = {}
  for (const route of routes) {
    const described = operation(route, schemas, errors, always)
    paths[route.template] = { ...paths[route.template], [route.method.toLowerCase()]: described }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate management API',
      version: options.version,
      description: ABOUT,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    paths,
    components: {
      schemas: { ...schemas.named, error: errorSchema(routes) },
      responses: errors.named,
      parameters: { idempotency_key: IDEMPOTENCY_KEY },
      headers: { request_id: REQUEST_ID, retry_after: RETRY_AFTER, idempotent_replayed: REPLAYED },
      securitySchemes: securitySchemes(options.servicePrefix),
    },
  }
}

const ABOUT = `The endpoints of the gateway itself. Model calls are not among them: they are the provider's own.

Keys are sent as \`Authorization: Bearer <key>\`; the headers \`x-api-key\` and \`api-key\` are read too.
Amounts of money are JSON numbers in US dollars with at most nine decimals. Instants are ISO 8601 in UTC.
Fields and parameters that an endpoint does not have are refused, never ignored.
HEAD is answered like GET, without the body; only exports have no HEAD.`

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
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

function securitySchemes(servicePrefix: string): JsonObject {
  const scheme = (description: string) => ({ type: 'http', scheme: 'bearer', description })
  return {
    admin_key: scheme(
      `An admin key (\`${servicePrefix}_admin_…\`): manages keys and sees the whole account.`,
    ),
    api_key: scheme(`An API key (\`${servicePrefix}_live_…\`): calls models and sees what is its own.`),
  }
}

function operation(route: Route, schemas: SchemaBook, errors: ErrorBook, headers: JsonObject): JsonObject {
  const { success } = route
  const parameters = [
    ...pathParameters(route.template),
    ...queryParameters(route.query, schemas),
    ...(route.repeatable ? [{ $ref: '#/components/parameters/idempotency_key' }] : []),
  ]
  const replayed = { 'idempotent-replayed': { $ref: '#/components/headers/idempotent_replayed' } }
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    security: route.access === 'admin' ? [{ admin_key: [] }] : [{ api_key: [] }, { admin_key: [] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === null ? {} : { requestBody: requestBody(route.body, schemas) }),
    responses: {
      [success.status]: {
        description: success.status === 201 ? 'Created.' : 'Done.',
        headers: route.repeatable ? { ...headers, ...replayed } : headers,
        content: {
          'application/json': { schema: schemas.describe(success.schema, 'output') },
          ...otherContent(success.alsoAs),
        },
      },
      ...errors.responsesOf(route),
    },
  }
}

function otherContent(types: Readonly<Record<string, string>> = {}): JsonObject {
  return Object.fromEntries(
    Object.entries(types).map(([type, description]) => [type, { schema: { type: 'string', description } }]),
  )
}

function pathParameters(template: string): JsonObject[] {
  const segments = template.split('/')
  return segments.flatMap((segment, i) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1]
    if (name === undefined) return []
    const whose = (segments[i - 1] ?? '').replace(/s$/, '')
    const description = `The \`${name}\` of the ${whose}.`
    return [{ name, in: 'path', required: true, description, schema: { type: 'string', minLength: 1 } }]
  })
}

/** The members of the schema, each as a parameter of its own. */
function queryParameters(query: z.ZodType | null, schemas: SchemaBook): JsonObject[] {
  if (query === null) return []
  const { properties = {}, required = [] } = schemas.describe(query, 'input') as {
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

/** An absent body is read as `{}`, so it is required only where that is not enough. */
function requestBody(body: z.ZodType, schemas: SchemaBook): JsonObject {
  return {
    required: !body.safeParse({}).success,
    content: { 'application/json': { schema: schemas.describe(body, 'input') } },
  }
}
