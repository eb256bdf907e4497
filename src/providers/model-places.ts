import { arrayOf, objectAt, type Place, sparseArrayOf, streamOf, TEXT } from '../metering/json-place.ts'
import type { RequestMember } from '../metering/request-facts.ts'

const NAMING: Place = objectAt({ model: TEXT })

/** An image tool draws with `model`, and may have an SVG written by another one. `max_uses` limits the cost. */
const TOOL_MEMBERS = { type: TEXT, model: TEXT, output_format: TEXT, svg: NAMING, max_uses: TEXT }

/** A namespace holds tools, and no namespaces. */
const TOOLS: Place = arrayOf(
  objectAt({ ...TOOL_MEMBERS, tools: arrayOf(objectAt({ ...TOOL_MEMBERS, tools: TEXT })) }),
)

/** An item of the input that brings tools: `additional_tools`, the output of a tool search. */
const ITEM: Place = objectAt({ tools: TOOLS })

/** What is stored for file search is paid by its size and the days it is kept. */
const VECTOR_STORES: Place = objectAt({ file_search: objectAt({ vector_stores: arrayOf(TEXT) }) })

/** The members of a request that lead to models, and the one that leads to storage. */
export const MODEL_MEMBERS = {
  model: objectAt({ id: TEXT }),
  fallbacks: arrayOf(NAMING),
  tools: TOOLS,
  prompt: objectAt({}),
  moderation: NAMING,
  svg: NAMING,
  output_format: TEXT,
  method: objectAt({ type: TEXT, reinforcement: TEXT }),
  tool_resources: VECTOR_STORES,
} as const satisfies Partial<Record<RequestMember, Place>>

/** A request inside a batch. */
const BODY: Place = objectAt({ ...MODEL_MEMBERS, input: sparseArrayOf(ITEM) })

/** A batch of the Messages surface. */
export const BATCH: Place = objectAt({ requests: streamOf(objectAt({ params: BODY })) })

/** A line of an uploaded batch of the Chat surface. */
export const BATCH_LINE: Place = objectAt({ body: BODY })

/** A request whose items are in the member of that name. */
export function withItems(name: string): Place {
  return objectAt({ [name]: streamOf(ITEM) })
}
