import assert from 'node:assert/strict'
import { Validator } from '@seriousme/openapi-schema-validator'
import { z } from 'zod'
import { ANSWERS } from '../../src/api/answers.ts'
import { EVENT_PAYLOADS } from '../../src/api/event-payload.ts'
import { parseOwnJson } from '../../src/api/fields.ts'
import { ERRORS } from '../../src/kernel/errors.ts'
import { VERSION } from '../../src/kernel/runtime.ts'
import { EVENT_TYPES } from '../../src/kernel/vocabulary.ts'
import { routes } from '../../src/management/endpoints.ts'
import { EXAMPLES, openApiDocument } from '../../src/management/openapi.ts'
import type { Route } from '../../src/management/route.ts'
import { startGateway } from '../support/gateway.ts'
import { test } from '../support/suite.ts'
import { Documented, type Operation, schemasIn } from './documented.ts'

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

test('the document, the route table and the answers that clients know have the same endpoints', () => {
  const names = routes.map(nameOf).sort()
  assert.deepEqual([...documented.operations().keys()].sort(), names)
  assert.deepEqual(Object.keys(ANSWERS).sort(), names)
})

test('each endpoint documents its response and the error response, both with the request id', () => {
  for (const route of routes) {
    const { responses } = documented.operation(nameOf(route))
    const statuses = [String(route.status), ...(route.mayBeEmpty ? ['204'] : []), 'default']
    assert.deepEqual(Object.keys(responses).sort(), statuses, nameOf(route))
    for (const response of Object.values(responses)) {
      const { headers } = documented.resolve(response) as { headers: Record<string, unknown> }
      assert.ok(headers['x-svc-request-id'] !== undefined)
    }
  }
  const { description } = documented.response('GET /v1/keys', 400)
  for (const code of Object.keys(ERRORS)) assert.ok(description.includes(`\`${code}\``), code)
  const { error } = (document['components'] as { schemas: Record<string, { properties: Properties }> })
    .schemas
  assert.deepEqual(error?.properties.error.properties.code.enum, Object.keys(ERRORS))
})

test('each endpoint documents exactly its parameters, body and keys', () => {
  for (const route of routes) {
    const operation = documented.operation(nameOf(route))
    const parameters = (operation.parameters ?? []).map((each) => documented.resolve(each))
    const names = (where: string) =>
      parameters
        .map((each) => each as { name: string; in: string })
        .filter((each) => each.in === where)
        .map((each) => each.name)
    const segments = Array.from(route.template.matchAll(/\{(\w+)\}/g), ([, each]) => each)
    assert.deepEqual(names('path'), segments)
    const { requiredRole, account } = route
    const query = parametersOf(route.query)
    assert.deepEqual(names('query'), account === 'none' ? query : ['account', ...query])
    assert.deepEqual(names('header'), route.repeatable ? ['Idempotency-Key'] : [])
    assert.equal(operation.requestBody === undefined, route.body === null)
    if (route.body !== null) assert.equal(operation.requestBody?.required, !route.body.safeParse({}).success)
    const admins = ['admin_key', 'session']
    const taken = { anyone: [], api_key: ['api_key', ...admins], session: admins }
    const expected = taken[requiredRole as keyof typeof taken] ?? admins
    assert.deepEqual(operation.security.flatMap(Object.keys), expected)
  }
})

interface Properties {
  readonly error: { readonly properties: { readonly code: { readonly enum: readonly string[] } } }
}

function parametersOf(query: z.ZodType | null): string[] {
  if (query === null) return []
  assert.ok(query instanceof z.ZodObject, 'the schema of a query is an object')
  return Object.keys(query.shape)
}

test('exactly these endpoints document Idempotency-Key and Idempotent-Replayed', () => {
  const repeatable = routes.filter((route) => route.repeatable).map(nameOf)
  assert.deepEqual(repeatable.sort(), [
    'POST /gateway/v1/accounts',
    'POST /gateway/v1/credits',
    'POST /gateway/v1/webhooks',
    'POST /v1/keys',
    'POST /v1/keys/{id}/rotate',
  ])
  for (const route of routes) {
    const { headers } = documented.response(nameOf(route), route.status)
    assert.equal(Object.hasOwn(headers, 'idempotent-replayed'), route.repeatable, nameOf(route))
  }
})

test('each body has an example that the endpoint accepts, and each endpoint a tag', () => {
  for (const route of routes) {
    assert.ok((documented.operation(nameOf(route)) as { tags?: string[] }).tags?.length === 1)
    if (route.body !== null)
      assert.deepEqual(
        route.body.safeParse(parseOwnJson(JSON.stringify(EXAMPLES[route.operationId] ?? null))).error,
        undefined,
        route.operationId,
      )
  }
  assert.deepEqual(
    Object.keys(EXAMPLES).filter(
      (id) => routes.find(({ operationId }) => operationId === id)?.body === undefined,
    ),
    [],
  )
})

test('every type of event has a payload, and the document a union of them that the type discriminates', () => {
  assert.deepEqual([...EVENT_PAYLOADS.keys()].sort(), [...EVENT_TYPES].sort())
  const { webhooks } = document as unknown as { webhooks: { event: { post: Operation } } }
  const schema = webhooks.event.post.requestBody?.content['application/json']?.schema
  const { oneOf, discriminator } = schema as { oneOf: unknown[]; discriminator: { mapping: object } }
  assert.equal(oneOf.length, EVENT_TYPES.length)
  assert.deepEqual(Object.keys(discriminator.mapping).sort(), [...EVENT_TYPES].sort())
})

test('every schema states a type, values or alternatives', () => {
  const says = ['type', '$ref', 'const', 'enum', 'anyOf', 'oneOf', 'allOf']
  const silent = [...schemasIn(document)]
    .filter(([, schema]) => !says.some((word) => Object.hasOwn(schema as object, word)))
    .map(([place]) => place)
  assert.deepEqual(silent, [])
  assert.ok([...schemasIn(document)].length > 50, 'the walk finds the schemas')
})

test('every reference resolves, and every component is used', () => {
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

test('the document uses the configured prefix in header names and keys', () => {
  const text = JSON.stringify(openApiDocument(routes, { version: '1.2.3', servicePrefix: 'acme' }))
  assert.match(text, /x-acme-request-id/)
  assert.match(text, /acme_live_/)
  assert.doesNotMatch(text, /x-svc-|svc_(?:live|admin)_/)
})

test('the gateway serves the document with the package version', async () => {
  const gateway = await startGateway()
  try {
    const response = await fetch(`${gateway.url}/gateway/openapi.json`, {
      headers: { authorization: `Bearer ${gateway.adminKey}` },
    })
    const served = asJson(openApiDocument(routes, { version: VERSION, servicePrefix: 'svc' }))
    assert.deepEqual(await response.json(), served)
  } finally {
    await gateway.close()
  }
})

test('assertConforms finds missing and undocumented members', () => {
  const schema = documented.response('GET /gateway/v1/balance', 200).content?.['application/json']?.schema
  const balance = {
    ...{ object: 'balance', balance_usd: 1, held_usd: 0, credited_usd: 1, charged_usd: 0, enforced: false },
  }
  documented.assertConforms(schema, balance)
  const { held_usd: _, ...less } = balance
  assert.throws(() => documented.assertConforms(schema, less), /held_usd/)
  assert.throws(() => documented.assertConforms(schema, { ...balance, more: 1 }), /additional/)
})
