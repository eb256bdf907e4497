import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

export interface Operation {
  readonly operationId: string
  readonly security: readonly Record<string, unknown>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, DocumentedResponse>>
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly schema: unknown
}

export interface DocumentedResponse {
  readonly description: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly content?: Content
}

type Content = Readonly<Record<string, { readonly schema: unknown }>>

/** The OpenAPI document as a client reads it, without the routes. */
export class Documented {
  readonly #document: Record<string, unknown>
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, multipleOfPrecision: 9 })
  /** Compiled schemas: compiling one takes 20 ms, and tests check every response. */
  readonly #compiled = new WeakMap<object, ValidateFunction>()

  constructor(document: Record<string, unknown>) {
    this.#document = document
    this.#ajv.addFormat('date-time', (text: string) => !Number.isNaN(Date.parse(text)))
    this.#ajv.addFormat('date', (text: string) => !Number.isNaN(Date.parse(`${text}T00:00:00Z`)))
  }

  operations(): ReadonlyMap<string, Operation> {
    const found = new Map<string, Operation>()
    const paths = this.#document['paths'] as Record<string, Record<string, Operation>>
    for (const [path, item] of Object.entries(paths)) {
      for (const [method, operation] of Object.entries(item)) {
        found.set(`${method.toUpperCase()} ${path}`, operation)
      }
    }
    return found
  }

  operation(name: string): Operation {
    const operation = this.operations().get(name)
    assert.ok(operation !== undefined, `${name} is not in the document`)
    return operation
  }

  response(name: string, status: number): DocumentedResponse {
    const { responses } = this.operation(name)
    const response = responses[status] ?? responses['default']
    assert.ok(response !== undefined, `${name} ${status} is not in the document`)
    return this.resolve(response) as DocumentedResponse
  }

  /** The target of a reference; any other value is returned as it is. */
  resolve(value: unknown): unknown {
    const reference = (value as { $ref?: string }).$ref
    if (reference === undefined) return value
    let found: unknown = this.#document
    for (const name of reference.replace(/^#\//, '').split('/')) {
      found = (found as Record<string, unknown> | undefined)?.[name]
    }
    assert.ok(found !== undefined, `${reference} points to nothing`)
    return found
  }

  assertConforms(schema: unknown, value: unknown): void {
    const validate = this.#compiled.get(schema as object) ?? this.#compile(schema as object)
    assert.ok(validate(value), `${this.#ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`)
  }

  #compile(schema: object): ValidateFunction {
    const validate = this.#ajv.compile({ ...schema, components: this.#document['components'] })
    this.#compiled.set(schema, validate)
    return validate
  }
}

export function* schemasIn(value: unknown, place = '#'): Generator<[place: string, schema: unknown]> {
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    const at = `${place}/${name}`
    if (name === 'schema') yield* withinSchema(member, at)
    else if (at === '#/components/schemas') {
      for (const [id, schema] of Object.entries(member as object)) yield* withinSchema(schema, `${at}/${id}`)
    } else yield* schemasIn(member, at)
  }
}

function* withinSchema(schema: unknown, place: string): Generator<[string, unknown]> {
  yield [place, schema]
  if (typeof schema !== 'object' || schema === null) return
  const parts = schema as Record<string, unknown>
  for (const [name, member] of Object.entries((parts['properties'] ?? {}) as object)) {
    yield* withinSchema(member, `${place}/properties/${name}`)
  }
  for (const one of ['items', 'additionalProperties', 'propertyNames', 'not']) {
    if (typeof parts[one] === 'object') yield* withinSchema(parts[one], `${place}/${one}`)
  }
  for (const several of ['anyOf', 'oneOf', 'allOf', 'prefixItems']) {
    for (const [i, member] of Object.entries((parts[several] ?? []) as unknown[])) {
      yield* withinSchema(member, `${place}/${several}/${i}`)
    }
  }
}
