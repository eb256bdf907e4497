import { z } from 'zod'

export type JsonObject = Record<string, unknown>

/** Turns zod schemas into those of the document. The ones that have an id are told once, and referred to. */
export interface SchemaBook {
  /** What a client sends (`input`) or reads (`output`); the two differ where a field is transformed. */
  describe(schema: z.ZodType, io: 'input' | 'output'): JsonObject
  /** The schemas with an id so far, for `components.schemas`. */
  readonly named: Readonly<Record<string, JsonObject>>
}

export function createSchemaBook(): SchemaBook {
  const named: Record<string, JsonObject> = {}
  return {
    named,
    describe(schema, io) {
      // Inside another object a schema with an id becomes a reference; by itself it would be written out.
      const { properties, $defs } = toPlainJson(
        z.toJSONSchema(z.object({ wanted: schema }), {
          target: 'draft-2020-12',
          io,
          // Fields that zod cannot describe, such as money, say in their metadata what they are.
          unrepresentable: 'any',
          override({ zodSchema, jsonSchema }) {
            shortenDatePattern(jsonSchema)
            // zod leaves out the defaults of transformed fields, for they may have another type than what is sent.
            const { def } = zodSchema._zod
            if (def.type === 'default' && isScalar(def.defaultValue)) jsonSchema.default = def.defaultValue
          },
        }),
      )
      for (const [id, found] of Object.entries($defs ?? {})) keep(named, id, found)
      return properties.wanted
    },
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

function keep(named: Record<string, JsonObject>, id: string, found: JsonObject): void {
  const known = named[id]
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(found)) {
    throw new Error(`The schema id ${id} is used for two schemas, or for what is sent and what is read.`)
  }
  named[id] = found
}

/** zod's own pattern for instants has 300 characters; the format says all of it but that they are in UTC. */
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
