import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { type ModelPrice, type PriceVersion, versionAt } from '../pricing/price-book.ts'
import { MODES } from '../pricing/price-file.ts'
import { formatInstant, instant, type Members, objectOf, schemaOf } from './fields.ts'
import { defineRoute, refused, replyTagged } from './route.ts'

interface ShownModel {
  readonly model: ModelPrice
  readonly shipped: PriceVersion
}

const modelMembers: Members<ShownModel> = {
  id: [z.string(), ({ model }) => model.id],
  provider: [z.string(), ({ model }) => model.provider],
  mode: [z.enum(MODES), ({ model }) => model.mode],
  aliases: [z.array(z.string()), ({ model }) => model.entry.aliases ?? []],
  retired: [z.boolean(), ({ model }) => model.entry.retired === true],
  source: [
    z.enum(['list', 'overlay']).describe('`overlay`: the file of the operator has added or changed it.'),
    ({ model, shipped }) => (isShipped(model, shipped) ? 'list' : 'overlay'),
  ],
  context_window_tokens: [z.int().nullable(), ({ model }) => model.contextWindowTokens],
  max_output_tokens: [z.int().nullable(), ({ model }) => model.maxOutputTokens],
  prices: [
    z
      .record(z.string(), z.unknown())
      .describe(
        'As in a price file: `rates` by tier, in US dollars as decimals in quotes, for a million tokens where the name ' +
          'says nothing else; `endpoints`, `tools` and multipliers where the model has some.',
      ),
    ({ model: { entry } }) => {
      const {
        id: _id,
        provider: _provider,
        mode: _mode,
        aliases: _aliases,
        retired: _retired,
        ...prices
      } = entry
      return prices
    },
  ],
}

/** Entries are compared deeply: an overlay makes all of them anew, with their members in another order. */
function isShipped({ id, entry }: ModelPrice, shipped: PriceVersion): boolean {
  const listed = shipped.names.get(id)?.entry
  return listed === entry || isDeepStrictEqual(listed, entry)
}

interface ShownBook {
  readonly version: PriceVersion
  readonly shipped: PriceVersion
  readonly later: readonly PriceVersion[]
  readonly overlayFile: string | null
}

const versionMembers: Members<PriceVersion> = {
  price_version: [z.string(), 'id'],
  effective_from: [
    instant().nullable().describe('Null: from the beginning.'),
    ({ effectiveFromMs }) => formatInstant(effectiveFromMs),
  ],
}

const bookMembers: Members<ShownBook> = {
  object: [z.literal('price_book'), () => 'price_book'],
  price_version: [z.string(), ({ version }) => version.id],
  effective_from: [instant().nullable(), ({ version }) => formatInstant(version.effectiveFromMs)],
  overlay: [
    z
      .string()
      .nullable()
      .describe('The price file of the operator; null where the list is as it was shipped.'),
    'overlayFile',
  ],
  upcoming: [
    z.array(schemaOf(versionMembers)).describe('Versions that are known and not in force yet.'),
    ({ later }) => later.map((version) => objectOf(versionMembers, version)),
  ],
  tools: [
    z.record(z.string(), z.unknown()).describe('What is paid by the call or by the hour, by provider.'),
    ({ version }) => version.entry.tools ?? {},
  ],
  models: [
    z.array(schemaOf(modelMembers)),
    ({ version, shipped }) => version.models.map((model) => objectOf(modelMembers, { model, shipped })),
  ],
}

export const pricesRoute = defineRoute({
  endpoint: 'GET /gateway/v1/prices',
  operationId: 'get_prices',
  summary: 'Show the price book in force',
  description:
    'The prices that calls are rated with now, on the node that answers. A client that sends the `etag` of its last answer ' +
    'as `If-None-Match` gets 304 while they are the same.',
  success: {
    status: 200,
    schema: schemaOf(bookMembers).meta({ id: 'price_book', description: 'The prices in force.' }),
  },
  errors: ['not_found'],
  async handle({ exchange }, { node, clock }) {
    if (node === null)
      return refused('not_found', 'There is no gateway here; `tollgate prices show` reads the file.')
    const { book, shipped, overlayFile } = node.prices()
    const nowMs = clock.nowMs()
    const shown = {
      version: versionAt(book, nowMs),
      shipped: versionAt(shipped, nowMs),
      later: book.versions.filter(({ effectiveFromMs }) => (effectiveFromMs ?? 0) > nowMs),
      overlayFile,
    }
    return replyTagged(exchange.headers, objectOf(bookMembers, shown))
  },
})
