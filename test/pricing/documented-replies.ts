import { versionAt } from '../../src/pricing/price-book.ts'
import { shippedBook } from '../../src/pricing/price-list.ts'
import type { Effect } from './documented-requests.ts'

const listed = versionAt(shippedBook(), Date.now()).entry.models

export function modelsOf(provider: string, ...modes: string[]): readonly string[] {
  return listed
    .filter((model) => model.provider === provider && modes.includes(model.mode ?? 'chat'))
    .filter((model) => model.context_window_tokens != null && (model.max_output_tokens ?? 0) > 0)
    .map((model) => model.id)
}

/** The limits of image models as an operator configures them; no list has them. */
export const IMAGE_LIMITS = { context_window_tokens: 30_000, max_output_tokens: 6_240 }

function limitsOf(id: string) {
  const model = listed.find((each) => each.id === id)
  return {
    window: model?.context_window_tokens ?? IMAGE_LIMITS.context_window_tokens,
    output: model?.max_output_tokens ?? IMAGE_LIMITS.max_output_tokens,
    audio: model?.rates.standard['audio_input'] != null,
  }
}

export interface Asked {
  readonly model: string
  readonly effect: Effect
  readonly bodyBytes: number
  readonly hasTools: boolean
}

/** How replies to the same request may differ: the share of the possible tokens used, and their kind. */
export interface Whim {
  readonly share: number
  readonly inputKind: number
  readonly outputIsAudio: boolean
  /** Upstream was busy and served the request as standard. */
  readonly downgraded: boolean
  readonly abroad: boolean
}

/** Tokens of upstream's own tool prompts; documented sums are lower. */
const TOOL_WORDS = 1_900

function context({ model, effect, bodyBytes, hasTools }: Asked, reader = model): number {
  const { window, audio } = limitsOf(reader)
  const more = effect.elsewhere || (effect.uses ?? 0) > 0 || (effect.elsewhereIfSpoken && audio)
  return more ? window : Math.min(bodyBytes + (hasTools ? TOOL_WORDS : 0), window)
}

function answer(model: string, limit: number | null | undefined, predicted = 0): number {
  const { window, output } = limitsOf(model)
  return Math.min((limit ?? output) + predicted, window)
}

function compacts({ effect }: Asked, prompt: number): boolean {
  return effect.compactsAbove !== undefined && prompt >= effect.compactsAbove
}

const portion = (most: number, { share }: Whim): number => Math.floor(most * share)

interface Step {
  readonly type: string
  readonly model: string
  readonly input: number
  readonly output: number
}

function stepUsage({ input, output }: Step, { inputKind }: Whim) {
  const kinds = ['input', 'read', 'five_minutes', 'one_hour']
  const kind = kinds[inputKind % kinds.length]
  const only = (...names: string[]) => (names.includes(kind ?? '') ? input : 0)
  return {
    input_tokens: only('input'),
    cache_read_input_tokens: only('read'),
    cache_creation_input_tokens: only('five_minutes', 'one_hour'),
    cache_creation: {
      ephemeral_5m_input_tokens: only('five_minutes'),
      ephemeral_1h_input_tokens: only('one_hour'),
    },
    output_tokens: output,
  }
}

export function messageReply(asked: Asked, whim: Whim): object {
  const { effect } = asked
  const steps: Step[] = []
  const fallbacks = effect.fallbacks ?? []
  const attempts = [{ model: asked.model, limit: effect.limit ?? null }, ...fallbacks]
  for (const [index, { model, limit }] of attempts.entries()) {
    const input = portion(context(asked, model), whim)
    const output = portion(answer(model, limit ?? effect.limit), whim)
    for (let sampling = 0; sampling <= (effect.uses ?? 0); sampling++) {
      if (compacts(asked, input))
        steps.push({ type: 'compaction', model, input, output: portion(limitsOf(model).output, whim) })
      steps.push({ type: index === 0 ? 'message' : 'fallback_message', model, input, output })
    }
    for (const advisor of effect.advisors ?? [])
      for (let use = 0; use < advisor.uses; use++)
        steps.push({
          type: 'advisor_message',
          model: advisor.model,
          input: portion(context(asked, advisor.model), whim),
          output: portion(answer(advisor.model, advisor.limit), whim),
        })
  }
  const served = attempts.at(-1)?.model ?? asked.model
  const last = steps.filter((step) => step.model === served && /message$/.test(step.type))
  const own = last.filter((step) => step.type === (fallbacks.length > 0 ? 'fallback_message' : 'message'))
  const sum = (name: 'input' | 'output') => own.reduce((total, step) => total + step[name], 0)
  const total: Step = { type: 'message', model: served, input: sum('input'), output: sum('output') }
  const plain = steps.every((step) => step.type === 'message')
  return {
    id: 'msg_1',
    type: 'message',
    model: served,
    content: [{ type: 'text', text: 'x' }],
    stop_reason: 'end_turn',
    usage: {
      ...stepUsage(total, whim),
      ...(plain && whim.abroad
        ? {}
        : {
            iterations: steps.map((step) => ({
              type: step.type,
              model: step.model,
              ...stepUsage(step, whim),
            })),
          }),
      server_tool_use: { web_search_requests: (effect.searches ?? 0) * attempts.length },
      speed: effect.fast && !whim.downgraded ? 'fast' : 'standard',
      inference_geo: effect.anywhere || !whim.abroad ? 'global' : 'us',
      service_tier: 'standard',
    },
  }
}

function tierOf({ effect }: Asked, { downgraded }: Whim, projectTier: string | null): string {
  const tier = effect.tier ?? projectTier ?? 'default'
  // Upstream refuses a flex request when it is full, and does not downgrade it.
  return downgraded && tier !== 'flex' ? 'default' : tier
}

function inputDetails(input: number, audio: boolean, { inputKind }: Whim): object {
  const kinds = ['plain', 'cached_tokens', 'cache_write_tokens', audio ? 'audio_tokens' : 'plain']
  const kind = kinds[inputKind % kinds.length] ?? 'plain'
  return kind === 'plain' ? {} : { [kind]: input }
}

export function chatReply(asked: Asked, whim: Whim, projectTier: string | null): object {
  const { model, effect } = asked
  const { window, audio } = limitsOf(model)
  const prompts = effect.prompts ?? 1
  const prompt = prompts === 1 ? context(asked) : Math.min(asked.bodyBytes, window * prompts)
  const input = portion(prompt, whim)
  const output =
    portion(answer(model, effect.limit, effect.predicted), whim) * prompts * (effect.answers ?? 1)
  return {
    id: 'chatcmpl-1',
    model,
    service_tier: tierOf(asked, whim, projectTier),
    choices: [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: input,
      prompt_tokens_details: inputDetails(input, audio, whim),
      completion_tokens: output,
      completion_tokens_details: audio && whim.outputIsAudio ? { audio_tokens: output } : {},
    },
  }
}

/** The reply of /v1/responses, /v1/responses/compact and /v1/decisions. */
export function responseReply(asked: Asked, whim: Whim, projectTier: string | null): object {
  const { model, effect } = asked
  const samplings = 1 + (effect.uses ?? 0)
  const prompt = portion(context(asked), whim)
  const written = portion(answer(model, effect.limit), whim)
  const summaries = compacts(asked, prompt + written) ? samplings : 0
  const input = prompt * (samplings + summaries)
  const fileSearches = Array.from({ length: effect.fileSearches ?? 0 }, (_, i) => ({
    type: 'file_search_call',
    id: `fs_${i}`,
  }))
  const runs = Array.from({ length: effect.containers ?? 0 }, (_, i) => ({
    type: 'code_interpreter_call',
    id: `ci_${i}`,
    container_id: `cntr_${i}`,
  }))
  return {
    id: 'resp_1',
    model,
    status: 'completed',
    service_tier: tierOf(asked, whim, projectTier),
    output: [...fileSearches, ...runs],
    usage: {
      input_tokens: input,
      input_tokens_details: inputDetails(input, false, whim),
      output_tokens: written + portion(limitsOf(model).output, whim) * summaries,
    },
    tool_usage: { web_search: { num_requests: effect.searches ?? 0 } },
  }
}

/** All inputs of a request together have at most this many tokens. */
const EMBEDDED_MAX = 300_000

export function embeddingReply(asked: Asked, whim: Whim): object {
  const tokens = portion(Math.min(asked.bodyBytes, EMBEDDED_MAX), whim)
  return { model: asked.model, data: [], usage: { prompt_tokens: tokens, total_tokens: tokens } }
}

/** Images are counted by pixels, so their bytes do not bound their tokens. */
export function imageReply(asked: Asked, whim: Whim, sendsImages: boolean): object {
  const { window, output } = limitsOf(asked.model)
  const input = portion(sendsImages ? window : Math.min(asked.bodyBytes, window), whim)
  return {
    data: [],
    usage: {
      input_tokens: input,
      input_tokens_details: whim.outputIsAudio ? { text_tokens: input } : { image_tokens: input },
      output_tokens: portion(output, whim) * (asked.effect.answers ?? 1),
    },
  }
}

/** Speech has at least this many bytes per second in the most compact accepted format. */
const BYTES_PER_SECOND = 125

export function transcriptionReply(asked: Asked, whim: Whim): object {
  const seconds = Math.floor(asked.bodyBytes / BYTES_PER_SECOND)
  if (asked.model === 'whisper-1') return { text: 'x', usage: { type: 'duration', seconds } }
  const { window, output } = limitsOf(asked.model)
  // Ten tokens per second.
  const input = portion(Math.min(seconds * 10, window), whim)
  return {
    text: 'x',
    usage: {
      type: 'tokens',
      input_tokens: input,
      input_token_details: { audio_tokens: input, text_tokens: 0 },
      output_tokens: portion(output, whim),
    },
  }
}
