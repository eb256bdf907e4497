import {
  arrayOf,
  objectAt,
  type Place,
  PRESENCE,
  sparseArrayOf,
  streamOf,
  TEXT,
} from '../metering/json-place.ts'
import type { RequestMember } from '../metering/request-facts.ts'

const NAMING: Place = objectAt({ model: TEXT })

/** Besides the model, what limits the cost. */
const FALLBACK: Place = objectAt({ model: TEXT, max_tokens: TEXT, speed: TEXT })

/** An image tool draws with `model`, and may have an SVG written by another one. The rest limits the cost. */
const TOOL_MEMBERS = {
  type: TEXT,
  model: TEXT,
  output_format: TEXT,
  svg: NAMING,
  max_uses: TEXT,
  max_tokens: TEXT,
  execution: TEXT,
  environment: objectAt({ type: TEXT }),
}

/** A namespace holds tools, and no namespaces. */
const TOOLS: Place = arrayOf(
  objectAt({ ...TOOL_MEMBERS, tools: arrayOf(objectAt({ ...TOOL_MEMBERS, tools: TEXT })) }),
)

/** An item of the input that brings tools: `additional_tools`, the output of a tool search. */
const ITEM: Place = objectAt({ tools: TOOLS })

/** What is stored for file search is paid by its size and the days it is kept. */
const VECTOR_STORES: Place = objectAt({ file_search: objectAt({ vector_stores: arrayOf(TEXT) }) })

const EDIT: Place = objectAt({
  type: TEXT,
  trigger: objectAt({ type: TEXT, value: TEXT }),
  compact_threshold: TEXT,
})

/**
 * The members of a request that lead to models, one that leads to storage, and two that limit what it costs: whatever is read inside of them must
 * not be there twice.
 */
export const MODEL_MEMBERS = {
  model: objectAt({ id: TEXT }),
  fallbacks: arrayOf(FALLBACK),
  tools: TOOLS,
  prompt: objectAt({}),
  moderation: NAMING,
  svg: NAMING,
  output_format: TEXT,
  method: objectAt({ type: TEXT, reinforcement: TEXT }),
  tool_resources: VECTOR_STORES,
  thread: objectAt({ type: TEXT, previous_message_id: TEXT }),
  context_management: { ...objectAt({ edits: arrayOf(EDIT) }), elements: EDIT },
} as const satisfies Partial<Record<RequestMember, Place>>

/** A request inside a batch. */
const BODY: Place = objectAt({ ...MODEL_MEMBERS, input: sparseArrayOf(ITEM) })

/** A batch of the Messages surface. */
export const BATCH: Place = objectAt({ requests: streamOf(objectAt({ params: BODY })) })

/** A line of an uploaded batch of the Chat surface. */
export const BATCH_LINE: Place = objectAt({ body: BODY })

/** What an item of the input says for itself, besides its tools. */
export const ITEM_CONTENT = ['content', 'arguments', 'output', 'input', 'action', 'operation'] as const

const SEEN_ITEM: Place = objectAt({
  tools: TOOLS,
  type: TEXT,
  id: PRESENCE,
  encrypted_content: TEXT,
  ...Object.fromEntries(ITEM_CONTENT.map((name) => [name, PRESENCE])),
})

/** A request whose items are in the member of that name. */
export function withItems(name: string): Place {
  return objectAt({ [name]: streamOf(SEEN_ITEM) })
}

/** Prompts to be completed: texts, or arrays of tokens, of which nothing is kept. */
export const PROMPTS: Place = objectAt({ prompt: streamOf(sparseArrayOf(TEXT)) })
