import assert from 'node:assert/strict'
import { test } from '../support/suite.ts'
import { breakingChanges } from './breaking-changes.ts'
import { committed, current, unannounced } from './openapi-document.ts'

test('docs/openapi.json is the document of the gateway, and the changelog names what breaks clients', () => {
  assert.deepEqual(unannounced(), [], 'name these changes in CHANGELOG.md')
  assert.ok(committed === current, 'run node test/docs/openapi-document.ts')
})

test('a change breaks clients if it removes, requires or retypes what they use, and not if it adds', () => {
  const text = committed.replace('"operationId": "list_keys"', '"operationId": "list_keys_of"')
  assert.deepEqual(breakingChanges(JSON.parse(committed), JSON.parse(text)), [])
  const change = (edit: (document: Changed) => void) => {
    const edited = JSON.parse(committed) as Changed
    edit(edited)
    return breakingChanges(JSON.parse(committed), edited)
  }
  const { schemas } = (JSON.parse(committed) as Changed).components
  assert.ok(schemas['key']?.properties['name'])
  assert.deepEqual(
    change(({ paths }) => delete paths['/v1/keys/{id}/revoke']),
    ['POST /v1/keys/{id}/revoke: is gone'],
  )
  assert.ok(
    change(({ components }) => delete components.schemas['key']?.properties['prefix']).includes(
      'GET /v1/keys/{id} 200.prefix: is gone',
    ),
  )
  assert.ok(
    change(({ components }) => Object.assign(components.schemas['key'] ?? {}, { required: [] })).includes(
      'GET /v1/keys/{id} 200.name: may now be absent',
    ),
  )
  assert.deepEqual(
    change(({ components }) =>
      Object.assign(components.schemas['key']?.properties ?? {}, { more: { type: 'string' } }),
    ),
    [],
  )
  const body = 'requestBody'
  assert.deepEqual(
    change(({ paths }) => {
      const { schema } = paths['/v1/keys']?.['post']?.[body].content['application/json'] ?? assert.fail()
      Object.assign(schema, { required: ['name', 'metadata'] })
    }),
    ['POST /v1/keys body.metadata: is now required'],
  )
})

interface Changed extends Record<string, unknown> {
  readonly paths: Record<
    string,
    Record<string, { requestBody: { content: Record<string, { schema: object }> } }>
  >
  readonly components: { readonly schemas: Record<string, { properties: Record<string, unknown> }> }
}
