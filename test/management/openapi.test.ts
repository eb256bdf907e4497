import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { z } from 'zod'
import { ERRORS } from '../../src/kernel/errors.ts'
import { openApiDocument } from '../../src/management/openapi.ts'
import type { Route } from '../../src/management/route.ts'
import { routes } from '../../src/management/router.ts'
import { Documented, schemasIn } from './documented.ts'

/** A value as it goes over the wire. */
function asJson(value: unknown): Record<string, unknown> {
  return JSON.parse(JSON.stringify(value))
}

const document = asJson(openApiDocument(routes, { version: '1.2.3', servicePrefix: 'svc' }))
const documented = new Documented(document)
const nameOf = ({ method, template }: Route): string => `${method} ${template}`

test('the document is valid OpenAPI 3.1', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(document))
  assert.ok(valid, JSON.stringify(errors))
  assert.equal(validator.version, '3.1')
})

test('the document has every endpoint, and nothing else', () => {
  assert.deepEqual([...documented.operations().keys()].sort(), routes.map(nameOf).sort())
})

test('no two endpoints have the same name for generated clients', () => {
  const ids = [...documented.operations().values()].map(({ operationId }) => operationId)
  assert.deepEqual(ids.sort(), [...new Set(routes.map(({ operationId }) => operationId))].sort())
})

for (const route of routes) {
  const name = nameOf(route)

  test(`${name}: has exactly the statuses that it can answer with`, () => {
    const statuses = new Set([
      route.success.status,
      ...[400, 401, 500, 503],
      ...(route.access === 'admin' ? [403] : []),
      ...(route.body === null ? [] : [408, 413]),
      ...(route.repeatable ? [409] : []),
      ...route.errors.map((code) => ERRORS[code].status),
    ])
    const { responses } = documented.operation(name)
    assert.deepEqual(Object.keys(responses).sort(), [...[...statuses].map(String).sort(), 'default'])
  })

  test(`${name}: its errors name the codes of their status, and no others`, () => {
    const told = new Set<string>()
    for (const status of Object.keys(documented.operation(name).responses)) {
      if (status === String(route.success.status) || status === 'default') continue
      for (const code of codesIn(documented.response(name, Number(status)))) {
        assert.equal(ERRORS[code as keyof typeof ERRORS].status, Number(status))
        told.add(code)
      }
    }
    for (const code of route.errors) assert.ok(told.has(code), code)
    assert.ok(told.has('invalid_api_key'))
    assert.equal(told.has('admin_key_required'), route.access === 'admin')
  })

  test(`${name}: has the parameters that it takes, and no others`, () => {
    const parameters = (documented.operation(name).parameters ?? []).map((each) => documented.resolve(each))
    const names = (where: string) =>
      parameters
        .map((each) => each as { name: string; in: string; schema: unknown })
        .filter((each) => each.in === where)
        .map((each) => each.name)
    assert.deepEqual(
      names('path'),
      Array.from(route.template.matchAll(/\{(\w+)\}/g), ([, each]) => each),
    )
    assert.deepEqual(names('query'), parametersOf(route.query))
    assert.deepEqual(names('header'), route.repeatable ? ['Idempotency-Key'] : [])
  })

  test(`${name}: has a body where it takes one, required where an empty one is not enough`, () => {
    const { requestBody } = documented.operation(name)
    assert.equal(requestBody === undefined, route.body === null)
    if (route.body !== null) assert.equal(requestBody?.required, !route.body.safeParse({}).success)
  })

  test(`${name}: says which keys it takes`, () => {
    const schemes = documented.operation(name).security.flatMap(Object.keys)
    const taken = {
      admin: ['admin_key', 'session'],
      any_key: ['api_key', 'admin_key', 'session'],
      sign_in: [],
    }
    assert.deepEqual(schemes, taken[route.access])
  })

  test(`${name}: has the request id on each of its answers`, () => {
    for (const response of Object.values(documented.operation(name).responses)) {
      const { headers } = documented.resolve(response) as { headers: Record<string, unknown> }
      assert.ok(headers['x-svc-request-id'] !== undefined)
    }
  })
}

function codesIn(response: { readonly content?: unknown }): string[] {
  const content = response.content as Record<string, { schema: ErrorSchema }>
  return content['application/json']?.schema.properties.error.properties.code.enum ?? []
}

interface ErrorSchema {
  readonly properties: {
    readonly error: { readonly properties: { readonly code: { readonly enum: string[] } } }
  }
}

function parametersOf(query: z.ZodType | null): string[] {
  if (query === null) return []
  assert.ok(query instanceof z.ZodObject, 'the schema of a query is an object')
  return Object.keys(query.shape)
}

test('these endpoints take an Idempotency-Key, say so on their answers, and no others do', () => {
  const repeatable = routes.filter((route) => route.repeatable).map(nameOf)
  assert.deepEqual(repeatable.sort(), [
    'POST /gateway/v1/credits',
    'POST /gateway/v1/webhooks',
    'POST /gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver',
    'POST /gateway/v1/webhooks/{id}/rotate-secret',
    'POST /gateway/v1/webhooks/{id}/test',
    'POST /v1/keys',
    'POST /v1/keys/{id}/rotate',
  ])
  for (const route of routes) {
    const { headers } = documented.response(nameOf(route), route.success.status)
    assert.equal(Object.hasOwn(headers, 'idempotent-replayed'), route.repeatable, nameOf(route))
  }
})

test('no schema of the document says nothing', () => {
  const says = ['type', '$ref', 'const', 'enum', 'anyOf', 'oneOf', 'allOf']
  const silent = [...schemasIn(document)]
    .filter(([, schema]) => !says.some((word) => Object.hasOwn(schema as object, word)))
    .map(([place]) => place)
  assert.deepEqual(silent, [])
  assert.ok([...schemasIn(document)].length > 50, 'the walk finds the schemas')
})

test('every reference points to something, and everything that can be referred to is', () => {
  const text = JSON.stringify(document)
  const references = new Set(Array.from(text.matchAll(/"\$ref":"(#[^"]*)"/g), ([, found]) => found ?? ''))
  for (const reference of references) documented.resolve({ $ref: reference })
  const { securitySchemes: _, ...components } = document['components'] as Record<string, object>
  const parts = Object.entries(components).flatMap(([room, named]) =>
    Object.keys(named).map((name) => `#/components/${room}/${name}`),
  )
  assert.deepEqual(
    parts.filter((part) => !references.has(part)),
    [],
  )
})

test('what several endpoints answer is told once', () => {
  const { schemas } = document['components'] as { schemas: Record<string, unknown> }
  for (const id of ['key', 'error']) assert.ok(Object.hasOwn(schemas, id), id)
})

test('what every endpoint can answer with is there though a route does not name it', () => {
  const [some] = routes
  assert.ok(some !== undefined)
  const silent: Route = {
    ...some,
    method: 'POST',
    template: '/gateway/silent',
    access: 'admin',
    repeatable: false,
    errors: [],
  }
  const made = new Documented(asJson(openApiDocument([silent], { version: '1.2.3', servicePrefix: 'svc' })))
  const statuses = Object.keys(made.operation('POST /gateway/silent').responses)
  const everywhere = ['400', '401', '403', '408', '413', '500', '503', 'default']
  assert.deepEqual(statuses, [String(some.success.status), ...everywhere])
})

test('the prefix of the installation is in the names of headers and keys', () => {
  const text = JSON.stringify(openApiDocument(routes, { version: '1.2.3', servicePrefix: 'acme' }))
  assert.match(text, /x-acme-request-id/)
  assert.match(text, /acme_live_/)
  assert.doesNotMatch(text, /x-svc-|svc_(?:live|admin)_/)
})

test('a schema id that stands for two schemas is a defect, not a mix-up', () => {
  const [some] = routes
  assert.ok(some !== undefined)
  const answering = (schema: z.ZodType, template: string): Route => ({
    ...some,
    template,
    success: { status: 200, schema },
  })
  const one = answering(z.object({ a: z.string() }).meta({ id: 'twice' }), '/gateway/one')
  const other = answering(z.object({ b: z.string() }).meta({ id: 'twice' }), '/gateway/other')
  const options = { version: '1.2.3', servicePrefix: 'svc' }
  openApiDocument([one], options)
  assert.throws(() => openApiDocument([one, other], options), /schema id twice/)
})
